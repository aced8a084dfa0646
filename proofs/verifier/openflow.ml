(* Rules and groups of a switch, as ovs-ofctl -O OpenFlow13 writes them. Trusted: every field and
   action that the specification does not have is refused. *)
open Checker
open Text

(* Larger ones are reserved. *)
let port_limit = 0xffffff00
let table_limit = 255
let metadata_bits = 62

type instruction = Action of action | Write of pattern | Goto of int

(* VALUE->FIELD *)
let set_field text =
  match String.split_on_char '>' text with
  | [ value; field ] when has_suffix "-" value ->
    let value = String.sub value 0 (String.length value - 1) in
    (match field with
     | "vlan_vid" ->
       let vid = below 0x2000 value in
       if vid < 0x1000 then unreadable "vlan_vid without its bit 0x1000: %s" text;
       SetVid vid
     | "vlan_pcp" -> SetPcp (below 8 value)
     | _ -> unreadable "field %s cannot be set here" field)
  | _ -> unreadable "action set_field:%s" text

let instruction text =
  match cut ':' text with
  | None when text = "pop_vlan" -> Action Pop
  | None when text = "IN_PORT" -> Action Back
  | Some ("push_vlan", "0x8100") -> Action Push
  | Some ("output", port) ->
    let port = below port_limit port in
    if port = 0 then unreadable "port 0";
    Action (Output port)
  | Some ("group", id) -> Action (Group (below port_limit id))
  | Some ("goto_table", table) -> Goto (below table_limit table)
  | Some ("write_metadata", data) -> Write (pattern metadata_bits number data)
  | Some ("set_field", rest) -> Action (set_field rest)
  | _ -> unreadable "action %s is not covered" text

(* The parts between the occurrences of a separator. *)
let rec split_on separator text =
  let n = String.length separator in
  let rec find i =
    if i + n > String.length text then None
    else if String.sub text i n = separator then Some i
    else find (i + 1) in
  match find 0 with
  | None -> [ text ]
  | Some i ->
    String.sub text 0 i
    :: split_on separator (String.sub text (i + n) (String.length text - i - n))

(* Actions, then at most one write_metadata, then at most one goto_table. *)
let instructions text =
  let rec read actions write goto = function
    | [] -> (List.rev actions, Option.value write ~default:any, goto)
    | Action action :: more when write = None && goto = None ->
      read (action :: actions) write goto more
    | Write data :: more when write = None && goto = None -> read actions (Some data) goto more
    | Goto table :: more when goto = None -> read actions write (Some table) more
    | _ -> unreadable "order of actions: %s" text in
  if text = "drop" then ([], any, None)
  else read [] None None (List.map instruction (String.split_on_char ',' text))

(* How Open vSwitch chooses among ports: a hash of both addresses, for which that of the source is
   replaced and restored. Any of them may be chosen; it is written to the metadata. *)
let choice_head =
  "move:NXM_OF_ETH_SRC[]->NXM_NX_XXREG0[0..47],move:NXM_OF_ETH_DST[0..23]->NXM_OF_ETH_SRC[24..47],\
   bundle_load(eth_src,"
let choice_field = ",hrw,ofport,OXM_OF_METADATA[0..15],members:"
let choice_tail = "),move:NXM_NX_XXREG0[0..47]->NXM_OF_ETH_SRC[],"

(* The ports of a choice that instructions begin with, and the text behind it. *)
let choice text =
  match split_on choice_head text with
  | [ ""; rest ] ->
    (match split_on choice_field rest with
     | [ basis; rest ] ->
       ignore (below 0x10000 basis);
       (match split_on choice_tail rest with
        | [ members; rest ] ->
          let port member =
            let port = below 0xff00 member in
            if port = 0 then unreadable "port 0";
            port in
          (List.map port (String.split_on_char ',' members), rest)
        | _ -> unreadable "the choice of a port: %s" text)
     | _ -> unreadable "the choice of a port: %s" text)
  | _ -> ([], text)

(* Actions, what may be written to the metadata, and the next table. *)
let instructions_of_rule text =
  match choice text with
  | [], text ->
    let actions, write, goto = instructions text in
    (actions, write, [], goto)
  | port :: others, rest ->
    (match instructions rest with
     | [], (0, 0), goto ->
       let write port = (port, 0xffff) in
       ([], write port, List.map write others, goto)
     | _ -> unreadable "more than a table behind the choice of a port: %s" text)

type entry = { table : int; priority : int; rule : rule; line : int }

(* Fields that frames do not have here: a rule that tests one may match, or not. *)
let other_fields =
  [ "eth_type"; "arp_op"; "arp_sha"; "arp_tha"; "arp_spa"; "arp_tpa"; "nw_src"; "nw_dst"; "nw_proto" ]

let is_value text =
  text <> ""
  && String.for_all
       (function '0' .. '9' | 'a' .. 'f' | 'A' .. 'F' | 'x' | ':' | '.' | '/' -> true | _ -> false)
       text

let match_field rule name value =
  match name with
  | _ when List.mem name other_fields ->
    if not (is_value value) then unreadable "the value of %s" name;
    { rule with r_more = true }
  | "in_port" -> { rule with r_port = (below port_limit value, ones 32) }
  | "eth_dst" -> { rule with r_dst = pattern 48 mac value }
  | "eth_src" -> { rule with r_src = pattern 48 mac value }
  | "vlan_vid" -> { rule with r_vid = pattern 13 number value }
  | "vlan_pcp" -> { rule with r_pcp = (below 8 value, 7) }
  | "metadata" -> { rule with r_meta = pattern metadata_bits number value }
  | _ -> unreadable "field %s is not covered" name

(* cookie=..,table=..,priority=..,FIELD=..,.. actions=.. *)
let entry_of_line (line, text) =
  let fields, actions =
    match cut ' ' text with
    | Some (fields, rest) when String.length rest > 8 && String.sub rest 0 8 = "actions=" ->
      (fields, String.sub rest 8 (String.length rest - 8))
    | _ -> unreadable "not a rule" in
  let r_acts, r_write, r_writes, r_goto = instructions_of_rule actions in
  let matches_all =
    { r_port = any; r_dst = any; r_src = any; r_vid = any; r_pcp = any; r_meta = any;
      r_more = false; r_acts; r_goto; r_write; r_writes } in
  let pair field =
    match cut '=' field with Some pair -> pair | None -> unreadable "field %s" field in
  let fields = List.map pair (String.split_on_char ',' fields) in
  let names = List.map fst fields in
  if List.length (List.sort_uniq compare names) <> List.length names then
    unreadable "a field occurs twice";
  let own = [ "cookie"; "table"; "priority" ] in
  let need name limit =
    match List.assoc_opt name fields with
    | Some value -> below limit value
    | None -> unreadable "%s is missing" name in
  let matched = List.filter (fun (name, _) -> not (List.mem name own)) fields in
  let rule = List.fold_left (fun r (name, value) -> match_field r name value) matches_all matched in
  if snd rule.r_pcp <> 0 && fst rule.r_vid land snd rule.r_vid land 0x1000 = 0 then
    unreadable "vlan_pcp is matched without a tag";
  { table = need "table" table_limit; priority = need "priority" 65536; rule; line }

(* group_id=N,type=all,bucket=actions=..,bucket=actions=.., or of type ff, with
   bucket=watch_port:N,actions=.. *)
let group_of_line (_, text) =
  let after prefix text =
    match split_on prefix text with
    | "" :: (_ :: _ as rest) -> String.concat prefix rest
    | _ -> unreadable "a bucket that is not covered: %s" text in
  let bucket text =
    match instructions (after "actions=" text) with
    | actions, (0, 0), None -> actions
    | _ -> unreadable "a bucket with instructions" in
  let watching text =
    match cut ',' (after "watch_port:" text) with
    | Some (port, rest) ->
      let port = below port_limit port in
      if port = 0 then unreadable "port 0";
      (port, bucket rest)
    | None -> unreadable "a bucket without actions" in
  match split_on ",bucket=" text with
  | [] -> unreadable "not a group"
  | head :: buckets ->
    let id, content =
      match String.split_on_char ',' head with
      | [ id; "type=all" ] -> (id, All (List.map bucket buckets))
      | [ id; "type=select" ] -> (id, Select (List.map bucket buckets))
      | [ id; "type=ff" ] -> (id, Failover (List.map watching buckets))
      | _ -> unreadable "only groups of types all, select and ff are covered, without weights" in
    (match cut '=' id with
     | Some ("group_id", id) -> (below port_limit id, content)
     | _ -> unreadable "group_id is missing")

let each_line file read text =
  let item (number, line) =
    within (Printf.sprintf "%s:%d" file number) (fun () -> read (number, line)) in
  List.rev (List.rev_map item (numbered_lines text))

let entries file text = each_line file entry_of_line text

let groups file text =
  let groups = each_line file group_of_line text in
  let ids = List.map fst groups in
  if List.length (List.sort_uniq compare ids) <> List.length ids then
    unreadable "%s: a group occurs twice" file;
  groups

(* Tables, each with the rules of the highest priority first, those of one priority together. *)
let switch entries groups =
  let count = List.fold_left (fun n e -> max n (e.table + 1)) 0 entries in
  let of_table = Array.make count [] in
  let add e =
    of_table.(e.table) <-
      (match of_table.(e.table) with
       | (priority, rules) :: higher when priority = e.priority ->
         (priority, e.rule :: rules) :: higher
       | higher -> (e.priority, [ e.rule ]) :: higher) in
  List.iter add (List.stable_sort (fun a b -> compare a.priority b.priority) (List.rev entries));
  { tables = List.map (List.map snd) (Array.to_list of_table); groups; down = [] }

(* The actions of all rules and groups. *)
let all_actions switch =
  let of_rule (rule : rule) = rule.r_acts in
  let of_group = function
    | _, (All buckets | Select buckets) -> buckets
    | _, Failover buckets -> List.map snd buckets in
  List.concat_map (List.map of_rule) (List.concat switch.tables)
  @ List.concat_map of_group switch.groups
