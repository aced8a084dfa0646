(* Why a proof is refused: the destination, the switch and the rule at which the checker stopped.
   Not trusted: it runs only after the checker has refused, and walks again with its functions. *)
open Checker

exception Stopped of string

let stop format = Printf.ksprintf (fun message -> raise (Stopped message)) format

(* Steps of one walk: frames that are copied at each hop are followed no further. *)
let max_steps = 1_000_000

(* What hosts send: untagged frames with their own address, or others too. *)
type sent = Own | Any of { tags : bool; sources : bool }

type walk = {
  folders : Folder.t list;
  fabric : fabric;
  ranking : ranking;
  sent : sent;
  delivery : bool;
  queue_name : int -> view -> string;  (* of a channel, and the tags of a frame *)
  mutable steps : int;
  mutable dropped : string;  (* where a copy was lost last *)
}

let switch_name walk switch = (List.hd walk.folders).switch_names.(switch)

(* The line of a rule, and of several folders also which one has it. *)
let place walk switch (rule : rule) =
  (* Rules of which no line speaks have line 0. *)
  let is_it (entry : Openflow.entry) = entry.rule == rule && entry.line > 0 in
  let line number (folder : Folder.t) =
    let suffix = 
      match folder.kind with
      | Rules -> ".flows"
      | Bridges -> ".bridge"
      | Routes -> ".routes"
      | Lids -> ".lft" in
    let name (entry : Openflow.entry) =
      Printf.sprintf "%s%s:%d%s" (switch_name walk switch) suffix entry.line
        (if List.length walk.folders = 1 then ""
         else Printf.sprintf " of folder %d" (number + 1)) in
    Option.map name (List.find_opt is_it folder.entries.(switch)) in
  match List.find_map Fun.id (List.mapi line walk.folders) with
  | Some line -> line
  | None -> switch_name walk switch

(* Rules tell the destinations of a class that fit a pattern from the others. *)
exception Divided of pattern

(* The copies that may leave a switch, each with the last rule that sent it: a list for each choice. *)
let rec copies walk switch held table port meta d s ts =
  walk.steps <- walk.steps + 1;
  if walk.steps > max_steps then stop "copies multiply";
  let rules = if table < List.length held.tables then List.nth held.tables table else [] in
  match in_table (rules_of_port port rules) meta (vids ts s) (pcps ts) d s with
  | Divide pattern -> raise (Divided pattern)
  | Refuse ->
    stop "%s: rules do not decide about these frames%s" (switch_name walk switch)
      (if ts = More then ", whose tags have been removed" else "")
  | Known hits ->
    let no_rule_text () =
      let name = switch_name walk switch in
      match (List.hd walk.folders).kind with
      | Rules -> Printf.sprintf "%s: no rule of table %d matches" name table
      | Bridges -> name ^ ": the port is not in the VLAN"
      | Routes -> name ^ ": no route"
      | Lids -> name ^ ": no entry" in
    let of_rule rule =
      let name = place walk switch rule in
      let of_effect = function
        | None ->
          stop "%s: the actions cannot be applied to the frame%s" name
            (if walk.sent = Own then "" else ", or to tags below the first one")
        | Some (ts', out) ->
          let sent = List.map (fun copy -> (rule, copy)) out in
          (match rule.r_goto with
           | None ->
             if out = [] then
               walk.dropped <- (if rule == no_rule then no_rule_text () else name ^ ": dropped");
             [ sent ]
           | Some table' when table' > table ->
             let behind write =
               List.map (List.append sent)
                 (copies walk switch held table' port (written write meta) d s ts') in
             List.concat_map behind (rule.r_write :: rule.r_writes)
           | Some _ -> stop "%s: goto_table leads backwards" name) in
      List.concat_map of_effect (perform held port rule.r_acts ts []) in
    List.concat_map of_rule hits

let names walk hosts =
  let all = List.map (Folder.host_name (List.hd walk.folders)) (List.sort compare hosts) in
  match List.filteri (fun i _ -> i < 4) all with
  | [] -> "nobody"
  | shown ->
    let more = List.length all - List.length shown in
    String.concat ", " shown ^ if more > 0 then Printf.sprintf " and %d more" more else ""

(* Who may receive a frame on a channel: a list for each choice. *)
let rec follow walk channel d s ts rank name =
  let switch, port = walk.fabric.entering channel in
  let send (rule, target, port, ts) =
    let rule = place walk switch rule in
    match target with
    | Nowhere ->
      walk.dropped <-
        (match (List.hd walk.folders).kind with
         | Rules | Bridges -> Printf.sprintf "%s: nothing is behind port %d" rule port
         | Routes -> rule ^ ": it leaves the fabric"
         | Lids -> rule ^ ": nobody has the LID behind this port");
      [ [] ]
    | ToHost _ when not walk.delivery -> [ [] ]
    | ToHost host when ts = Bottom -> [ [ host ] ]
    | ToHost host ->
      stop "%s: the frame reaches %s with a VLAN tag" rule (names walk [ host ])
    | ToChannel next ->
      if priority ts = None then
        stop "%s: a frame goes to another switch with a priority that its host has chosen" rule;
      let next_rank = walk.ranking.rank (Cycle.queue_of walk.fabric next ts) in
      let next_name = walk.queue_name next ts in
      if next_rank > walk.ranking.bound then
        stop "%s: %s has rank %d, above the bound %d" rule next_name next_rank walk.ranking.bound;
      if next_rank <= rank then
        stop "%s: a frame in %s (rank %d) can wait for %s (rank %d)" rule name rank next_name
          next_rank;
      let ts = if walk.sent = Own then ts else forget ts in
      follow walk next d s ts next_rank next_name in
  let also before copy =
    let receivers = send copy in
    List.concat_map (fun all -> List.map (List.append all) receivers) before in
  let of_choice = List.fold_left also [ [] ] in
  let of_version held =
    let target (rule, (port, ts)) =
      (rule, fst (resolved_seen walk.fabric switch held (port, ts)), port, ts) in
    List.map (List.map target) (copies walk switch held 0 port 0 d s ts) in
  (* Rules of two versions that do the same are followed once. *)
  let same = List.equal (fun (_, target, _, ts) (_, target', _, ts') -> (target, ts) = (target', ts')) in
  let add choices choice = if List.exists (same choice) choices then choices else choice :: choices in
  let choices =
    List.fold_left add [] (List.concat_map of_version (walk.fabric.versions switch)) in
  List.sort_uniq compare (List.map (List.sort compare) (List.concat_map of_choice (List.rev choices)))

(* Whom a frame of a class from a host reaches; None if it may be anybody. *)
let wanted walk d host =
  let fabric = walk.fabric in
  let others = List.filter (fun other -> other <> host) fabric.hosts in
  if in_class d fabric.broadcast then Some others
  else
    match List.filter (fun other -> in_class d (fabric.mac other)) others with
    | [] -> None
    | owners -> Some owners

let rec from_host walk d (source, ts) host =
  walk.dropped <- "";
  let channel = walk.fabric.from_host host in
  let rank = walk.ranking.rank (Cycle.queue_of walk.fabric channel ts) in
  match follow walk channel d (exactly source) ts rank (walk.queue_name channel ts) with
  | exception Divided pattern ->
    let bit = dividing [] d pattern in
    from_host walk (half false d bit) (source, ts) host;
    from_host walk (half true d bit) (source, ts) host
  | _ when not walk.delivery -> ()
  | choices ->
    let wrong owners = List.find_opt (fun l -> l <> List.sort compare owners) choices in
    (match wanted walk d host, choices with
     | Some owners, _ when wrong owners <> None ->
       let received = Option.get (wrong owners) in
       stop "the frame reaches %s, but is for %s%s" (names walk received) (names walk owners)
         (if walk.dropped = "" then "" else Printf.sprintf " (%s)" walk.dropped)
     | None, one :: other :: _ ->
       stop "the frame is for nobody, and reaches %s or %s" (names walk one) (names walk other)
     | _ -> ())

(* Sources and tags of a host, of which rules of its switch tell none apart that are not here. *)
let samples walk host =
  let own = walk.fabric.mac host in
  match walk.sent with
  | Own -> [ (own, Bottom) ]
  | Any { tags; sources } ->
    let rules =
      List.concat_map (fun (_, tables) -> List.concat (List.concat tables))
        (tables_of walk.fabric (walk.fabric.from_host host)) in
    let tested field = List.sort_uniq compare (List.map (fun rule -> fst (field rule)) rules) in
    let vids = List.filter (fun vid -> vid <> 0x1000) (tested (fun rule -> rule.r_vid)) in
    let of_vid vid =
      List.map (fun priority -> Tag (Some (vid lor 0x1000), Some priority, More)) priorities in
    let all_tags = if tags then List.concat_map of_vid (0x1000 :: vids) else [] in
    let all_sources = if sources then tested (fun rule -> rule.r_src) else [] in
    let with_source source = List.map (fun ts -> (source, ts)) (Bottom :: all_tags) in
    List.concat_map with_source (own :: all_sources)

let sample_text walk host (source, ts) =
  let address = Folder.address_text (List.hd walk.folders) source in
  (if source = walk.fabric.mac host then "" else " with the source " ^ address)
  ^
  match ts with
  | Tag (Some vid, Some priority, _) ->
    Printf.sprintf " with a tag (VLAN %d, priority %d)" (vid land 0xfff) priority
  | _ -> ""

let of_class walk d =
  let destination = "frames to " ^ Folder.class_text (List.hd walk.folders) d in
  let from host =
    let of_sample sample =
      match from_host walk d sample host with
      | () -> None
      | exception Stopped message ->
        Some (Printf.sprintf "%s from %s%s: %s" destination (names walk [ host ])
                (sample_text walk host sample) message) in
    List.find_map of_sample (samples walk host) in
  match List.find_map from walk.fabric.hosts with
  | Some message -> message
  | None -> destination ^ ": the checker does not follow what the rules divide"

(* The reason, if [check_all] has refused these classes. *)
let reason folders fabric ranking sent ~delivery queue_name accepts_class classes =
  let walk = { folders; fabric; ranking; sent; delivery; queue_name; steps = 0; dropped = "" } in
  match List.find_opt (fun d -> not (accepts_class d)) classes with
  | Some d -> of_class walk d
  | None when not (exceptions_follow classes) ->
    "the exception of a class is not the cube of a later class"
  | None -> "the classes do not cover all addresses"
