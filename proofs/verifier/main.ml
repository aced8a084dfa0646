(* knotless-verify: judges a proof file, with the checker that is proven in Coq. Trusted. *)
open Text

let usage =
  "knotless-verify FOLDER PROOF        judge a proof for the fabric and its rules or routes in a\n\
  \                                    folder\n\
   knotless-verify BEFORE AFTER PROOF  the same while switches go from the rules of one folder to\n\
  \                                    those of the next; there may be more before\n\
   knotless-verify --print FOLDER      print what is read of a folder\n\n\
   exit status: 0 what the proof claims is proven, 1 refused, or a cycle, 2 input that cannot be\n\
   read\n"

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

(* The files of a folder are those of the proof. *)
let check_files texts files =
  let claimed = Hashtbl.create 1000 in
  List.iter (fun (name, hash) -> Hashtbl.replace claimed name hash) files;
  List.iter (fun (name, text) ->
      let hash = Sha256.of_string text in
      match Hashtbl.find_opt claimed name with
      | None -> refused "%s is not a file of this proof" name
      | Some wanted when wanted <> hash ->
        refused "%s has changed: its SHA-256 is %s, not %s" name hash wanted
      | Some _ -> Hashtbl.remove claimed name)
    texts;
  List.iter (fun (name, _) -> if Hashtbl.mem claimed name then refused "%s is missing" name) files

let folder_of_texts texts =
  if Routes.are_in texts then Routes.of_texts texts
  else if Lft.are_in texts then Lft.of_texts texts
  else if Bridges.are_in texts then Bridges.of_texts texts
  else Folder.of_texts texts

let print texts =
  if Routes.are_in texts then Routes.print texts
  else if Lft.are_in texts then Lft.print texts
  else Folder.print (folder_of_texts texts)

let read_folders paths (proof : Proof_file.t) =
  if List.compare_lengths paths proof.folders <> 0 then
    refused "the proof is of %d folders of rules, not of %d" (List.length proof.folders)
      (List.length paths);
  let read path files =
    let texts = Folder.texts ~tags:proof.any_tags path in
    check_files texts files;
    folder_of_texts texts in
  let folders = List.map2 read paths proof.folders in
  let fabric (folder : Folder.t) = folder.fabric_text in
  if List.exists (fun folder -> fabric folder <> fabric (List.hd folders)) folders then
    refused "fabric.json is not the same in all folders";
  folders

(* Frames have priority 0, one that an action sets, or, with [any_tags], any that a host chooses. *)
let check_lossless (proof : Proof_file.t) (folder : Folder.t) =
  let pauses priority = List.mem priority proof.lossless in
  let check = function
    | Checker.SetPcp priority when not (pauses priority) ->
      refused "priority %d, which rules set, does not pause" priority
    | _ -> () in
  List.iter (fun priority ->
      if (priority = 0 || proof.any_tags) && not (pauses priority) then
        refused "priority %d does not pause" priority)
    Proof_file.priorities;
  Array.iter (fun switch -> List.iter (List.iter check) (Openflow.all_actions switch))
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

(* The same for routers, whose packets of all priorities are judged as those of one. *)
let queues_of_routers (proof : Proof_file.t) =
  if proof.groups <> [] then refused "packets keep their priority, so that none share a queue";
  let lowest = if proof.flow_control = "pause" then 0 else List.hd proof.lossless in
  ((fun _ -> lowest), Routes.flow_control proof proof.lossless)

(* The checker divides classes where rules do: of classes that were chosen to harm, without end. *)
let with_limit steps (fabric : Checker.fabric) =
  let taken = ref 0 in
  let entering channel =
    incr taken;
    if !taken > steps then refused "its classes take more than %d steps" steps;
    fabric.entering channel in
  { fabric with entering }

(* The ranks of all queues, of which the proof has those above one. *)
let ranking (folder : Folder.t) (fabric : Checker.fabric) (ranks : Proof_file.ranks) =
  let levels = Proof_file.levels in
  let rank_of = Array.make (levels * Array.length folder.channel_names) 1 in
  (* No queue comes before that of a host. *)
  Array.fill rank_of (levels * folder.first_host) (levels * Folder.hosts folder) 0;
  List.iter (fun ((name, priority), rank) ->
      let channel = Cycle.channel folder name in
      let queue = fabric.queue channel priority in
      if queue <> (levels * channel) + priority then
        refused "rank %s/%d: not the lowest priority of its queue" name priority;
      rank_of.(queue) <- rank)
    ranks.above_one;
  { Checker.rank = Array.get rank_of; bound = ranks.bound }

(* Judges what hosts send; [all]: to any address, else to those of the classes. *)
let require folders lowest ?(sent = Explain.Own) ?(all = true) ~delivery fabric ranking classes =
  let folder : Folder.t = List.hd folders in
  (* Ranks rise from hop to hop, so that no frame passes more queues than there are; and classes
     are divided at each bit of an address once. *)
  let channels = List.init (Array.length folder.channel_names) Fun.id in
  let fuel = (Proof_file.levels * List.length channels) + 48 + 1 in
  let versions = List.length folders + 1 in
  let steps = 100_000 + (100 * versions * List.length classes * List.length channels) in
  let fabric = with_limit steps fabric in
  let check, check_all =
    match sent with
    | Explain.Own -> (Checker.check delivery, Checker.check_all delivery)
    | Any { tags; sources } -> (Checker.check_any sources tags, Checker.check_all_any sources tags) in
  if not ((if all then check_all else check) fabric ranking fuel channels classes) then
    let queue_name channel ts =
      let priority = Option.get (Checker.priority ts) in
      Printf.sprintf "%s/%d" folder.channel_names.(channel) (lowest priority) in
    let accepts d = check fabric ranking fuel channels [ d ] in
    refused "%s" (Explain.reason folders fabric ranking sent ~delivery queue_name accepts classes)

(* Hosts of a pair that a failure cuts off, as far as both remain. *)
let cut_pairs folder (fabric : Checker.fabric) pairs =
  let remain (a, b) = a <> b && List.mem a fabric.hosts && List.mem b fabric.hosts in
  List.sort_uniq compare
    (List.filter remain
       (List.map (fun (a, b) -> (Cycle.host folder a, Cycle.host folder b)) pairs))

(* What is proven of a failure: the pairs that it cuts; None: of delivery nothing is claimed. *)
let check_failure folders lowest sent fabric intact (safe : Proof_file.safe)
    (claimed : Proof_file.failure) =
  let folder = List.hd folders in
  let failure = Failure.of_part folder fabric claimed.part in
  let ranks = Option.fold ~none:intact ~some:(ranking folder fabric) claimed.own in
  let judge ?sent ?all ~delivery fabric classes =
    try require folders lowest ?sent ?all ~delivery fabric ranks classes
    with Refused message -> refused "failure of %s: %s" failure.name message in
  let left = Failure.after folder fabric failure in
  let cut = cut_pairs folder left claimed.cut in
  judge ~sent ~delivery:false (Failure.during folder fabric failure) safe.classes;
  if not claimed.delivers then (failure.name, None)
  else begin
    List.iter (fun (fabric, classes) -> judge ~all:false ~delivery:true fabric classes)
      (Failure.deliveries left cut);
    (failure.name, Some (List.length cut))
  end

let check_safe folders lowest sent fabric (safe : Proof_file.safe) =
  let folder = List.hd folders in
  let ranks = ranking folder fabric safe.ranks in
  let judge ?sent ~delivery folders =
    let fabric = { fabric with Checker.versions = Folder.versions folders } in
    require folders lowest ?sent ~delivery fabric ranks safe.classes in
  (match List.rev folders with
   | last :: before :: _ :: _ when safe.delivery ->
     (* Older frames may meet the rules of all folders, new ones only the last two. *)
     judge ~sent ~delivery:false folders;
     judge ~delivery:true [ before; last ]
   | _ ->
     if safe.delivery then judge ~delivery:true folders;
     if sent <> Explain.Own || not safe.delivery then judge ~sent ~delivery:false folders);
  List.map (check_failure folders lowest sent fabric ranks safe) safe.failures

(* Of IPv4 and of InfiniBand, the checker judges classes of their addresses. *)
let check_safe_tables folder lowest fabric (safe : Proof_file.safe) =
  let switches, bits, addresses =
    if folder.Folder.kind = Routes then ("routers", 32, "addresses of IPv4")
    else ("subnets", 16, "LIDs") in
  if safe.failures <> [] || not safe.delivery then
    refused "of %s only delivery without failures is covered" switches;
  if not (Folder.cover bits safe.classes) then
    refused "the classes are not those of all %s" addresses;
  require [ folder ] lowest ~all:false ~delivery:true fabric (ranking folder fabric safe.ranks)
    safe.classes

let verify paths proof_path =
  let proof = Proof_file.read proof_path in
  let folders = read_folders paths proof in
  let folder = List.hd folders in
  let is kind = List.exists (fun (folder : Folder.t) -> folder.kind = kind) folders in
  let routers = is Routes and subnet = is Lids in
  if (routers || subnet) && List.length folders > 1 then
    refused "a proof of %s is of one folder" (if routers then "routers" else "a subnet");
  let sent =
    if proof.any_tags || proof.any_sources then
      Explain.Any { tags = proof.any_tags; sources = proof.any_sources }
    else Own in
  if (routers || subnet) && sent <> Own then
    refused "packets to %s have neither tags nor sources" (if routers then "routers" else "LIDs");
  let lowest, condition =
    if routers then queues_of_routers proof
    else if subnet then (Fun.id, Lft.flow_control proof)
    else queues proof in
  (match proof.claim with
   | Safe { failures = _ :: _; _ } when is Bridges ->
     refused "of 802.1Q switches failures are not covered"
   | _ when is Bridges && List.length folders > 1 ->
     refused "a proof of 802.1Q switches is of one folder"
   | _ -> ());
  if not (routers || subnet) then List.iter (check_lossless proof) folders;
  let queue channel priority = (Proof_file.levels * channel) + lowest priority in
  let fabric = folder.fabric (Folder.versions folders) queue in
  match proof.claim with
  | Cycle _ | Safe { failures = _ :: _; _ } when List.length folders > 1 ->
    refused "this claim is for one folder of rules"
  | Cycle waits ->
    let condition =
      if routers then Routes.condition_of_cycle proof waits else condition in
    Cycle.check folder fabric proof waits;
    Cycle.print folder fabric condition waits;
    exit 1  (* as of a refused proof: 0 is for fabrics that cannot deadlock *)
  | Safe safe when routers || subnet ->
    check_safe_tables folder lowest fabric safe;
    let files = List.length (List.hd proof.folders) in
    if routers then Conclusion.print_routers folder files condition
    else Conclusion.print_subnet folder files condition
  | Safe safe ->
    let failures = check_safe folders lowest sent fabric safe in
    let files = List.fold_left (fun n files -> n + List.length files) 0 proof.folders in
    Conclusion.print folders files condition sent ~delivery:safe.delivery failures

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
    | [ "--print"; path ] -> print (Folder.texts ~tags:true path)
    | (path :: _ :: _) as all when path <> "" && path.[0] <> '-' ->
      (match List.rev all with
       | proof :: folders -> verify (List.rev folders) proof
       | [] -> assert false)
    | _ -> prerr_string usage; exit 2
  with
  | Refused message -> fail 1 ("refused: " ^ message)
  | Unreadable message -> fail 2 message
  | Stack_overflow -> fail 2 "the fabric is too large for the stack: raise it by ulimit -s"
  | Out_of_memory -> fail 2 "it needs more memory than a verdict should"
