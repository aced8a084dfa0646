(* knotless-verify: judges a proof file, with the checker that is proven in Coq. Trusted. *)
open Text

let usage =
  "knotless-verify FOLDER PROOF   judge a proof for the fabric and the rules in a folder\n\
   knotless-verify --print FOLDER print what is read of a folder\n\n\
   exit status: 0 proven safe, 1 refused, or a cycle, 2 input that cannot be read\n"

(* Beyond this a hostile file is meant. *)
let max_heap_bytes = 8 * 1024 * 1024 * 1024

let max_message = 800

let limit_memory () =
  let check () =
    if (Gc.quick_stat ()).heap_words * (Sys.word_size / 8) > max_heap_bytes then raise Out_of_memory
  in
  ignore (Gc.create_alarm check)

(* What the checker builds lives for one class: most of it dies young in a heap of 8 MB. *)
let set_up_memory () =
  Gc.set { (Gc.get ()) with minor_heap_size = 1 lsl 20; space_overhead = 200 }

(* The files of the folder are those of the proof. *)
let check_files texts (proof : Proof_file.t) =
  let claimed = Hashtbl.create 1000 in
  List.iter (fun (name, hash) -> Hashtbl.replace claimed name hash) proof.files;
  List.iter (fun (name, text) ->
      let hash = Sha256.of_string text in
      match Hashtbl.find_opt claimed name with
      | None -> refused "%s is not a file of this proof" name
      | Some wanted when wanted <> hash ->
        refused "%s has changed: its SHA-256 is %s, not %s" name hash wanted
      | Some _ -> Hashtbl.remove claimed name)
    texts;
  List.iter (fun (name, _) -> if Hashtbl.mem claimed name then refused "%s is missing" name)
    proof.files

(* Frames have priority 0, or one that an action sets. *)
let check_lossless (folder : Folder.t) (proof : Proof_file.t) =
  let pauses priority = List.mem priority proof.lossless in
  let check actions =
    List.iter (function
        | Checker.SetPcp priority when not (pauses priority) ->
          refused "priority %d, which rules set, does not pause" priority
        | _ -> ())
      actions in
  if not (pauses 0) then refused "priority 0 does not pause";
  Array.iter (List.iter (fun (e : Openflow.entry) -> check e.rule.r_acts)) folder.entries;
  Array.iter (fun (switch : Checker.switch) ->
      List.iter (fun (_, (Checker.All buckets | Select buckets)) -> List.iter check buckets)
        switch.groups)
    folder.switches

(* The lowest priority of the queue of each priority, and the flow control in a sentence. *)
let queues (proof : Proof_file.t) =
  match proof.flow_control with
  | "pause" ->
    if proof.groups <> [] then refused "under PAUSE all priorities share a queue";
    ((fun _ -> 0), "under PAUSE")
  | "pfc" | "credits" ->
    let lowest priority =
      match List.find_opt (List.mem priority) proof.groups with
      | Some (first :: _) -> first
      | _ -> priority in
    let groups =
      let text group = String.concat " and " (List.map string_of_int group) in
      String.concat ""
        (List.map (fun group -> ", priorities " ^ text group ^ " together") proof.groups) in
    (lowest, (if proof.flow_control = "pfc" then "under PFC" else "under credits") ^ groups)
  | other -> refused "flow control %s is not covered: all links have to pause" other

let theorem (folder : Folder.t) files condition =
  Printf.printf
    "accepted: the fabric cannot deadlock %s\n\n\
     Proven in Coq (check_all_sound), for every frame that a host sends untagged, from its own\n\
     address, to any of the 2^48 addresses:\n\
    \  - no state that the network can reach is deadlocked, whatever the sizes of its buffers;\n\
    \  - as long as there are frames, the first one of some queue can move;\n\
    \  - when hosts stop sending, the network is empty after a bounded number of moves: no loops;\n\
    \  - then a frame to the address of another host has reached that host, once, and no other,\n\
    \    and a broadcast each other host, once.\n\
     Judged: %d switches, %d hosts, %d rules in %d files, whose SHA-256 the proof names.\n\
     Assumed:\n\
    \  - the files say what switches hold, and how they are cabled; that does not change;\n\
    \  - switches do what OpenFlow 1.3 says, and store a frame before they send it on;\n\
    \  - each queue of an input (%s) has room for a longest frame that nobody\n\
    \    else can take, and holds its sender back when it is full;\n\
    \  - of several choices (groups, hashes, rules of one priority) a switch may take any;\n\
    \  - hosts take what arrives; links lose and change nothing;\n\
    \  - the compiler of OCaml, the extraction from Coq and the reader of files are correct.\n"
    condition
    (Array.length folder.switches)
    (Folder.hosts folder) (Folder.rules folder) files
    (if condition = "under PAUSE" then "one for each link" else "one for each link and priority")

(* The checker divides classes where rules do: of classes that were chosen to harm, without end. *)
let with_limit steps (fabric : Checker.fabric) =
  let taken = ref 0 in
  let entering channel =
    incr taken;
    if !taken > steps then refused "its classes take more than %d steps" steps;
    fabric.entering channel in
  { fabric with entering }

let verify path proof_path =
  let proof = Proof_file.read proof_path in
  let texts = Folder.texts path in
  check_files texts proof;
  let folder = Folder.of_texts texts in
  let lowest, condition = queues proof in
  check_lossless folder proof;
  let fabric = folder.fabric (fun channel priority -> (8 * channel) + lowest priority) in
  match proof.claim with
  | Cycle waits ->
    Cycle.check folder fabric waits;
    Cycle.print condition waits;
    exit 1  (* as of a refused proof: 0 is for fabrics that cannot deadlock *)
  | Safe { bound; ranks; classes } ->
    let queues = 8 * Array.length folder.channel_names in
    let rank_of = Array.make queues 1 in
    (* No queue comes before that of a host. *)
    Array.fill rank_of (8 * folder.first_host) (8 * Folder.hosts folder) 0;
    List.iter (fun ((name, priority), rank) ->
        rank_of.(fabric.queue (Cycle.channel folder name) priority) <- rank)
      ranks;
    let ranking = { Checker.rank = Array.get rank_of; bound } in
    (* Ranks rise from hop to hop, so that no frame passes more queues than there are; and classes
       are divided at each bit of an address once. *)
    let fuel = queues + 48 + 1 in
    let channels = List.init (Array.length folder.channel_names) Fun.id in
    let steps = 100_000 + (100 * List.length classes * List.length channels) in
    let fabric = with_limit steps fabric in
    if Checker.check_all fabric ranking fuel channels classes then
      theorem folder (List.length texts) condition
    else
      let queue_name channel ts =
        Printf.sprintf "%s/%d" folder.channel_names.(channel) (lowest (Checker.pcp ts)) in
      let accepts d = Checker.check fabric ranking fuel channels [ d ] in
      refused "%s" (Explain.reason folder fabric ranking queue_name accepts classes)

let () =
  set_up_memory ();
  limit_memory ();
  let fail status message =
    let length = String.length message in
    let shown = if length > max_message then String.sub message 0 max_message ^ ".." else message in
    let printable c = if c < ' ' || c = '\127' then '?' else c in
    flush stdout;
    prerr_endline ("knotless-verify: " ^ String.map printable shown);
    exit status in
  try
    match List.tl (Array.to_list Sys.argv) with
    | [ "--help" ] -> print_string usage
    | [ "--print"; path ] -> Folder.print (Folder.of_texts (Folder.texts path))
    | [ path; proof ] when path <> "" && path.[0] <> '-' -> verify path proof
    | _ -> prerr_string usage; exit 2
  with
  | Refused message -> fail 1 ("refused: " ^ message)
  | Unreadable message -> fail 2 message
  | Stack_overflow -> fail 2 "the fabric is too large for the stack: raise it by ulimit -s"
  | Out_of_memory -> fail 2 "it needs more memory than a verdict should"
