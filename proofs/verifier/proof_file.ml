(* A proof file: what its writer claims about a folder, and the evidence. Trusted: it says which
   flow control is judged, and of which files. *)
open Text

type class_ = Checker.pattern * Checker.pattern list
(* A cube of destinations, and cubes that are exceptions. *)

type wait = {
  holder : string * int;  (* the channel, by its output port, and the priority of the queue *)
  requested : string * int;
  host : string;
  destination : int;
  source : int;
  tags : (int * int) list;  (* with which the host sends the frame *)
  via : string list;  (* channels, from the host's to the one that is requested *)
}

type ranks = { bound : int; above_one : ((string * int) * int) list }

(* A part of the fabric that may fail: a link, by one of its ports, or a switch. *)
type part = Link of string | Switch of string

type failure = {
  part : part;
  own : ranks option;  (* None: those of the intact fabric *)
  delivers : bool;
  cut : (string * string) list;  (* pairs of hosts that it does not deliver *)
}

type safe = { delivery : bool; ranks : ranks; classes : class_ list; failures : failure list }
type claim = Safe of safe | Cycle of wait list

type t = {
  any_tags : bool;  (* hosts send frames with any tags, and with any source *)
  any_sources : bool;
  flow_control : string;
  groups : int list list;  (* of priorities that share a queue *)
  lossless : int list;
  folders : (string * string) list list;  (* the files of each, with their SHA-256 *)
  claim : claim;
}

let priorities = [ 0; 1; 2; 3; 4; 5; 6; 7 ]
let max_rank = 1 lsl 40

(* Queues of a channel, at most: one for each priority, or under credits for each virtual lane. *)
let levels = 16
let levels_under flow_control = if flow_control = Some "credits" then levels else 8

(* SWITCH:PORT/PRIORITY or HOST/PRIORITY *)
let queue levels text =
  match String.rindex_opt text '/' with
  | None -> unreadable "not a queue: %s" text
  | Some i ->
    (String.sub text 0 i, below levels (String.sub text (i + 1) (String.length text - i - 1)))

(* Priorities and ranges of them: 0-2 or 0 3-5. *)
let priorities_of fields =
  let range text =
    match cut '-' text with
    | None -> [ below 8 text ]
    | Some (first, last) ->
      let first = below 8 first and last = below 8 last in
      if first >= last then unreadable "not a range of priorities: %s" text;
      List.filter (fun p -> first <= p && p <= last) priorities in
  let all = List.concat_map range fields in
  if all = [] || List.length (List.sort_uniq compare all) <> List.length all then
    unreadable "priorities: %s" (String.concat " " fields);
  List.sort compare all

(* VID/PRIORITY *)
let tag text =
  match cut '/' text with
  | Some (vid, priority) -> (0x1000 lor below 0x1000 vid, below 8 priority)
  | None -> unreadable "not a tag: %s" text

let class_of cube rest =
  let cube = Text.cube cube in
  match rest with
  | [] -> (cube, [])
  | "but" :: (_ :: _ as exceptions) -> (cube, List.map Text.cube exceptions)
  | _ -> unreadable "exceptions follow the word but"

let is_hash text =
  String.length text = 64
  && String.for_all (function '0' .. '9' | 'a' .. 'f' -> true | _ -> false) text

let version = "knotless-proof 3"

(* The lines of the evidence for a fabric that cannot deadlock. *)
let safe_of_lines levels delivery each lines =
  let bound = ref None and ranks = ref [] and classes = ref [] in
  let failures = ref [] in
  (* The ranks so far, of the intact fabric or of the last failure. *)
  let take_ranks () =
    let taken = { bound = Option.value !bound ~default:1; above_one = List.rev !ranks } in
    bound := None;
    ranks := [];
    taken in
  let intact = ref None in
  let end_part () =
    match !failures with
    | [] -> intact := Some (take_ranks ())
    | failure :: before when !bound <> None ->
      failures := { failure with own = Some (take_ranks ()) } :: before
    | _ -> if !ranks <> [] then unreadable "ranks without a bound" in
  let fails part =
    end_part ();
    failures := { part; own = None; delivers = false; cut = [] } :: !failures in
  each (fun fields ->
      match fields, !failures with
      | [ "bound"; number ], _ when !bound = None -> bound := Some (below max_rank number)
      | [ "rank"; name; number ], _ -> ranks := (queue levels name, below max_rank number) :: !ranks
      | "class" :: cube :: rest, [] -> classes := class_of cube rest :: !classes
      | [ "failure"; "link"; port ], _ -> fails (Link port)
      | [ "failure"; "switch"; name ], _ -> fails (Switch name)
      | [ "delivers" ], failure :: before ->
        failures := { failure with delivers = true } :: before
      | "cut" :: source :: (_ :: _ as destinations), failure :: before when failure.delivers ->
        let pairs = List.map (fun destination -> (source, destination)) destinations in
        failures := { failure with cut = List.rev_append pairs failure.cut } :: before
      | _ -> unreadable "not a line of this claim")
    lines;
  end_part ();
  Safe { delivery; ranks = Option.get !intact; classes = List.rev !classes;
         failures = List.rev !failures }

let cycle_of_lines levels each lines =
  let waits = ref [] in
  each (fun fields ->
      match fields, !waits with
      | "wait" :: holder :: requested :: host :: destination :: source :: tags, waits_before ->
        if List.exists (fun wait -> wait.via = []) waits_before then unreadable "via is missing";
        waits :=
          { holder = queue levels holder; requested = queue levels requested; host;
            destination = address destination; source = address source; tags = List.map tag tags;
            via = [] }
          :: waits_before
      | "via" :: via, wait :: before when wait.via = [] && List.length via >= 2 ->
        waits := { wait with via } :: before
      | _ -> unreadable "not a line of this claim")
    lines;
  if !waits = [] || List.exists (fun wait -> wait.via = []) !waits then
    unreadable "a cycle has waits, each with the channels of its frame";
  Cycle (List.rev !waits)

let read path =
  let text = read_file path in
  within path @@ fun () ->
  if not (String.for_all (fun c -> c = '\n' || (c >= ' ' && c < '\127')) text) then
    unreadable "not ASCII text";
  if not (has_suffix "\n" text) then unreadable "it ends early";
  let each read lines =
    List.iter (fun (number, line) ->
        within (Printf.sprintf "line %d" number) (fun () ->
            let fields = String.split_on_char ' ' line in
            if List.mem "" fields then unreadable "more than one blank in a row, or none needed";
            read fields))
      lines in
  let any_tags = ref false and any_sources = ref false in
  let flow_control = ref None and groups = ref [] and lossless = ref None in
  let files = ref [] and folders = ref [] and named = Hashtbl.create 1000 in
  let header = function
    | [ "tags"; "any" ] when not !any_tags -> any_tags := true
    | [ "sources"; "any" ] when not !any_sources -> any_sources := true
    | [ "flow-control"; name ] when !flow_control = None -> flow_control := Some name
    | "group" :: fields -> groups := priorities_of fields :: !groups
    | "lossless" :: fields when !lossless = None -> lossless := Some (priorities_of fields)
    | [ "file"; name; hash ] when is_hash hash ->
      if Hashtbl.mem named name then unreadable "file %s occurs twice" name;
      Hashtbl.add named name ();
      files := (name, hash) :: !files
    | [ "then" ] ->
      folders := List.rev !files :: !folders;
      files := [];
      Hashtbl.reset named
    | _ -> unreadable "not a line of the header" in
  let rec split before = function
    | (number, line) :: rest when String.length line > 6 && String.sub line 0 6 = "claim " ->
      (List.rev before, (number, line), rest)
    | line :: rest -> split (line :: before) rest
    | [] -> unreadable "the claim is missing" in
  match numbered_lines text with
  | (1, first) :: lines when first = version ->
    let head, (_, claim), evidence = split [] lines in
    each header head;
    let all = List.concat !groups in
    if List.length (List.sort_uniq compare all) <> List.length all then
      unreadable "a priority is in two groups";
    let levels = levels_under !flow_control in
    let claim =
      match claim with
      | "claim safe" -> safe_of_lines levels true each evidence
      | "claim deadlock-free" -> safe_of_lines levels false each evidence
      | "claim cycle" -> cycle_of_lines levels each evidence
      | _ -> unreadable "unknown: %s" claim in
    (match !flow_control with
     | None -> unreadable "flow-control is missing"
     | Some flow_control ->
       { any_tags = !any_tags; any_sources = !any_sources; flow_control; groups = List.rev !groups; claim;
         folders = List.rev (List.rev !files :: !folders);
         lossless = Option.value !lossless ~default:priorities })
  | _ -> unreadable "the first line is not %s" version
