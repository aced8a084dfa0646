//! Every input of the corpora, in a fixed order.

use std::path::Path;

use fuzz::TARGETS;

#[test]
fn every_input_of_the_corpora_is_survived() {
    for (name, target) in TARGETS {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpora").join(name);
        let files = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
        let mut files: Vec<_> = files.collect();
        files.sort();
        assert!(files.len() > 3, "{name}: {} inputs", files.len());
        for file in files {
            println!("{}", file.display());
            target(&std::fs::read(&file).unwrap());
        }
    }
}
