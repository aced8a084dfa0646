(* A folder with an InfiniBand subnet and the tables of its switches. Trusted: what is read here is
   what the verdict is about.

   An address is a LID: 16 of the 48 bits, the highest 32 are 0, and nothing is claimed of others. A
   port of a host has 2^LMC LIDs: to the specification each is a host of its own, behind the same
   port, whose packets wait in one queue. What is for a switch itself (port 0) has arrived.

   What a host sends to its own LIDs stays in it: here its switch hands that back at once.

   Where packets have service levels, the first switch puts a tag on, whose VLAN is the SL and whose
   priority is the virtual lane; the last one takes it off. So a packet keeps its SL, and each link
   has a queue for each lane. *)
open Checker
open Text

let suffix = ".lft"
let are_in texts = List.exists (fun (name, _) -> has_suffix suffix name) texts

(* The LIDs of hosts and switches are below; those above are of groups. *)
let lid_limit = 0xc000
let port_limit = 255
let service_levels = List.init 16 Fun.id
let dropping_lane = 15

(* What leaves by a port: of several LIDs that are behind it, for one of these; 0: to a switch. *)
let leaving port lid = Folder.leaving ((lid lsl 8) lor port)

type ports = {
  to_switches : (int, unit) Hashtbl.t array;  (* of each switch *)
  to_hosts : (int, int list) Hashtbl.t array;  (* the LIDs behind each *)
}

let attached ports switch =
  let keys table = List.of_seq (Hashtbl.to_seq_keys table) in
  List.sort compare (keys ports.to_switches.(switch) @ keys ports.to_hosts.(switch))

let fabric_of_json top =
  Json.only [ "name"; "switches"; "hosts"; "links"; "read_from" ] top;
  let switch_name = function
    | Json.Text name -> Folder.check_name name; name
    | _ -> unreadable "a switch is no text" in
  let names = List.map switch_name (Json.list "switches" top) in
  let index = Folder.index_of "switch" names in
  let switches = Array.of_list names in
  let tables () = Array.map (fun _ -> Hashtbl.create 64) switches in
  let ports = { to_switches = tables (); to_hosts = tables () } in
  let name (switch, port) = Printf.sprintf "%s:%d" switches.(switch) port in
  let end_of switch_key port_key value =
    let switch_name = Json.text switch_key value in
    match Hashtbl.find_opt index switch_name with
    | None -> unreadable "switch %s is missing" switch_name
    | Some switch ->
      let port = below port_limit (Json.number port_key value) in
      if port = 0 then unreadable "port 0 of %s" switch_name;
      if Hashtbl.mem ports.to_switches.(switch) port || Hashtbl.mem ports.to_hosts.(switch) port
      then unreadable "port %s occurs twice" (name (switch, port));
      (switch, port) in
  let cabling = Folder.Cabling.create () in
  List.iter (fun value ->
      Json.only [ "a"; "a_port"; "b"; "b_port" ] value;
      let link switch_key port_key =
        let switch, port = end_of switch_key port_key value in
        Hashtbl.add ports.to_switches.(switch) port ();
        (switch, port) in
      let a = link "a" "a_port" in
      let b = link "b" "b_port" in
      let add (switch, port) far =
        Folder.Cabling.attach cabling (switch, leaving port 0) (ToChannel cabling.count);
        Folder.Cabling.add_channel cabling far (name (switch, port)) in
      add a b;
      add b a)
    (Json.list "links" top);
  let first_host = cabling.count in
  let lids = ref [] and homes = ref [] in
  let host value =
    Json.only [ "name"; "switch"; "port"; "lid"; "lmc" ] value;
    let host_name = Json.text "name" value in
    Folder.check_name host_name;
    let first = below lid_limit (Json.number "lid" value) in
    let number = 1 lsl below 8 (Json.number "lmc" value) in
    if first = 0 || first + number > lid_limit then unreadable "the LIDs of %s" host_name;
    let switch, port = end_of "switch" "port" value in
    let home = cabling.count in
    let own = List.init number (fun more -> first + more) in
    Hashtbl.add ports.to_hosts.(switch) port own;
    List.iter (fun lid ->
        let behind = ToHost (cabling.count - first_host) in
        Folder.Cabling.attach cabling (switch, leaving port lid) behind;
        Folder.Cabling.add_channel cabling (switch, port)
          (if lid = first then host_name else Printf.sprintf "%s+%d" host_name (lid - first));
        lids := lid :: !lids;
        homes := home :: !homes)
      own in
  List.iter host (Json.list "hosts" top);
  let addresses = Array.of_list (List.rev !lids) and homes = Array.of_list (List.rev !homes) in
  if List.length (List.sort_uniq compare !lids) <> Array.length addresses then
    unreadable "two hosts have one LID";
  let fabric versions queue =
    let home channel = if channel < first_host then channel else homes.(channel - first_host) in
    Folder.Cabling.fabric cabling first_host addresses versions (fun channel lane ->
        queue (home channel) lane) in
  (switches, ports, Folder.Cabling.names cabling, first_host, fabric)

type line =
  | Entry of int * int list  (* a LID, and the ports of which a packet to it takes any *)
  | Lanes of (int * int) * int list  (* input and output port, and the lane of each SL *)
  | Level of int * int * int list  (* input port, and the SL of what comes from there to LIDs *)

let port text = decimal (port_limit - 1) text

let destination text =
  let value = lid text in
  if value = 0 || value >= lid_limit then unreadable "not a LID of a port: %s" text;
  value

let distinct what values =
  if List.length (List.sort_uniq compare values) <> List.length values then
    unreadable "a %s occurs twice" what;
  values

(* LID port PORT..
   sl2vl IN OUT : VL VL ..     the lane of each of the 16 SLs
   from PORT sl SL to LID..    what the host there sends to these LIDs; to others it has any SL *)
let line_of_text (number, text) =
  let read =
    match String.split_on_char ' ' text with
    | lid_text :: "port" :: (_ :: _ as out) ->
      Entry (destination lid_text, distinct "port" (List.map port out))
    | "sl2vl" :: enters :: leaves :: ":" :: lanes
      when List.compare_lengths lanes service_levels = 0 ->
      Lanes ((port enters, port leaves), List.map (decimal dropping_lane) lanes)
    | "from" :: from :: "sl" :: sl :: "to" :: (_ :: _ as lids) ->
      Level (port from, decimal 15 sl, List.map destination lids)
    | _ -> unreadable "not a line of a forwarding table" in
  (number, read)

let rule =
  { r_port = any; r_dst = any; r_src = any; r_vid = any; r_pcp = any; r_meta = any; r_more = false;
    r_acts = []; r_goto = None; r_write = any; r_writes = [] }

let is_to lid = (lid, ones 48)
let is_port port = (port, ones 32)
let is_written port = (port, 0xff)
let is_level sl = (0x1000 lor sl, ones 13)

let entry table priority line rule = { Openflow.table; priority; rule; line }

(* What the hosts at a switch send to their own LIDs, above other rules. *)
let own_entries ports switch =
  let back port lid =
    entry 0 3 0
      { rule with r_port = is_port port; r_dst = is_to lid; r_acts = [ Output (leaving port lid) ] }
  in
  Hashtbl.fold (fun port lids all -> List.map (back port) lids @ all) ports.to_hosts.(switch) []

(* Rules for single LIDs, from a table on: it finds the block of a LID, of which each has a table of
   its own, so that a packet is compared with few. *)
let block_bits = 6
let block lid = lid lsr block_bits

let blocks lines =
  List.sort_uniq compare
    (List.filter_map (function _, Entry (lid, _) -> Some (block lid) | _ -> None) lines)

let in_blocks first lines rules_of_entry =
  let tables = Hashtbl.create 64 in
  let find place of_block =
    Hashtbl.add tables of_block (first + 1 + place);
    entry first 0 0
      { rule with r_dst = (of_block lsl block_bits, ones 48 - ones block_bits);
                  r_goto = Some (first + 1 + place) } in
  let find_blocks = List.mapi find (blocks lines) in
  let of_line = function
    | line, Entry (lid, out) ->
      let table = Hashtbl.find tables (block lid) in
      let add rule = entry table 0 line { rule with r_dst = is_to lid } in
      List.map add (rules_of_entry lid out)
    | _, (Lanes _ | Level _) -> [] in
  find_blocks @ List.concat_map of_line lines

(* The rules of a switch whose packets are all in lane 0. *)
let plain_entries ports switch lines =
  let send lid out =
    if out = 0 then []  (* it has arrived *)
    else if Hashtbl.mem ports.to_hosts.(switch) out then [ Output (leaving out lid) ]
    else [ Output (leaving out 0) ] in
  in_blocks 0 lines (fun lid out -> List.map (fun port -> { rule with r_acts = send lid port }) out)

(* The same where lanes differ. Table 0 puts the SL on; those from 1 on write the output port to the
   metadata; the next finds the lane by input port, output port and SL; the last tells the LIDs of a
   host apart. *)
let entries_with_lanes ports switch lines =
  let finds_lane = 2 + List.length (blocks lines) in
  let delivers = finds_lane + 1 in
  let to_1 = { rule with r_goto = Some 1 } in
  let tagged from sl =
    { to_1 with r_port = is_port from; r_acts = [ Push; SetVid (0x1000 lor sl) ] } in
  let of_host from = List.map (fun sl -> entry 0 1 0 (tagged from sl)) service_levels in
  let is_host port = Hashtbl.mem ports.to_hosts.(switch) port in
  let of_lane line (enters, leaves) sl lane =
    let rule =
      { rule with r_port = is_port enters; r_meta = is_written leaves; r_vid = is_level sl } in
    entry finds_lane 0 line
      (if lane = dropping_lane then rule
       else if is_host leaves then { rule with r_acts = [ Pop ]; r_goto = Some delivers }
       else { rule with r_acts = [ SetPcp lane; Output (leaving leaves 0) ] }) in
  let write _ out =
    let writes = List.map is_written out in
    [ { rule with r_write = List.hd writes; r_writes = List.tl writes; r_goto = Some finds_lane } ]
  in
  let of_line = function
    | _, Entry _ -> []
    | line, Lanes (ends, lanes) -> List.map2 (of_lane line ends) service_levels lanes
    | line, Level (from, sl, lids) ->
      if not (is_host from) then unreadable "line %d: no host is behind port %d" line from;
      List.map (fun lid -> entry 0 2 line { (tagged from sl) with r_dst = is_to lid }) lids in
  let deliver port lid =
    entry delivers 0 0
      { rule with r_dst = is_to lid; r_meta = is_written port;
                  r_acts = [ Output (leaving port lid) ] } in
  let hosts = Hashtbl.fold (fun port lids all -> (port, lids) :: all) ports.to_hosts.(switch) [] in
  (entry 0 0 0 to_1 :: List.concat_map (fun (port, _) -> of_host port) hosts)
  @ in_blocks 1 lines write
  @ List.concat_map of_line lines
  @ List.concat_map (fun (port, lids) -> List.map (deliver port) lids) hosts

(* A lane that is not known could be any, and a rule that is missing drops: so none may be. *)
let check_lanes ports switch lines =
  let known = Hashtbl.create 1000 in
  List.iter (function _, Lanes (ends, _) -> Hashtbl.replace known ends () | _ -> ()) lines;
  let all = attached ports switch in
  List.iter (fun enters ->
      List.iter (fun leaves ->
          if not (Hashtbl.mem known (enters, leaves)) then
            unreadable "the lanes from port %d to port %d are not known" enters leaves)
        all)
    all

let check_distinct lines =
  let all what f = ignore (distinct what (List.concat_map (fun (_, line) -> f line) lines)) in
  all "LID" (function Entry (lid, _) -> [ lid ] | _ -> []);
  all "pair of ports" (function Lanes (ends, _) -> [ ends ] | _ -> []);
  all "LID from one port" (function
      | Level (from, _, lids) -> List.map (fun lid -> (from, lid)) lids
      | _ -> [])

let read texts =
  let fabric_text = Folder.fabric_text texts in
  let switch_names, ports, channel_names, first_host, fabric =
    within "fabric.json" (fun () -> fabric_of_json (Json.of_string fabric_text)) in
  let by_name = Folder.texts_by_name "switch" switch_names [ suffix ] texts in
  let lines_of name =
    match Hashtbl.find_opt by_name (name ^ suffix) with
    | None -> refused "%s%s is missing: what %s holds is not known" name suffix name
    | Some text -> Openflow.each_line (name ^ suffix) line_of_text text in
  let lines = Array.map lines_of switch_names in
  let has_lanes = function _, Entry _ -> false | _, (Lanes _ | Level _) -> true in
  let with_lanes = Array.exists (List.exists has_lanes) lines in
  let entries_of switch lines =
    within (switch_names.(switch) ^ suffix) (fun () ->
        check_distinct lines;
        if with_lanes then check_lanes ports switch lines;
        own_entries ports switch
        @ (if with_lanes then entries_with_lanes else plain_entries) ports switch lines) in
  let entries = Array.mapi entries_of lines in
  let switches = Array.map (fun of_switch -> Openflow.switch of_switch []) entries in
  let channels = Folder.index_of "channel" (Array.to_list channel_names) in
  ({ Folder.kind = Lids; fabric_text; fabric; channels; channel_names; first_host; switch_names;
     entries; switches },
   ports, lines)

let of_texts texts =
  let folder, _, _ = read texts in
  folder

(* Hosts, whatever LIDs they have; and entries of LIDs. *)
let hosts (folder : Folder.t) =
  let fabric = folder.fabric (fun _ -> []) (fun channel _ -> channel) in
  List.length
    (List.sort_uniq compare
       (List.map (fun host -> fabric.queue (fabric.from_host host) 0) fabric.hosts))

let count (folder : Folder.t) =
  let is_of_lid (entry : Openflow.entry) = entry.table > 0 && entry.line > 0 in
  let of_switch entries =
    let lid (entry : Openflow.entry) = entry.rule.r_dst in
    let lids = List.map lid (List.filter is_of_lid entries) in
    List.length (List.filter (fun dst -> dst <> any) (List.sort_uniq compare lids)) in
  Array.fold_left (fun n entries -> n + of_switch entries) 0 folder.entries

(* Whether packets are in several lanes. *)
let has_lanes (folder : Folder.t) =
  let sets_level (entry : Openflow.entry) =
    List.exists (function SetVid _ -> true | _ -> false) entry.rule.r_acts in
  Array.exists (List.exists sets_level) folder.entries

let flow_control (proof : Proof_file.t) =
  if proof.flow_control <> "credits" then
    refused "flow control %s: InfiniBand has credits" proof.flow_control;
  if proof.groups <> [] then refused "each virtual lane has credits of its own";
  "under credits"

(* What was read, in a form that depends on nothing but its meaning. *)
let print texts =
  let folder, _, lines = read texts in
  let fabric = folder.fabric (fun _ -> []) (fun channel _ -> channel) in
  Array.iteri (fun channel name ->
      let switch, port = fabric.entering channel in
      let host = channel - folder.first_host in
      Printf.printf "%s %s to %s:%d%s\n" (if host < 0 then "channel" else "host") name
        folder.switch_names.(switch) port
        (if host < 0 then "" else " " ^ lid_text (fabric.mac host)))
    folder.channel_names;
  let numbers list = String.concat " " (List.map string_of_int list) in
  Array.iteri (fun switch lines ->
      let name = folder.switch_names.(switch) in
      List.iter (function
          | _, Entry (lid, ports) ->
            Printf.printf "entry %s %s to %s\n" name (lid_text lid) (numbers ports)
          | _, Lanes ((enters, leaves), lanes) ->
            Printf.printf "lanes %s %d %d %s\n" name enters leaves (numbers lanes)
          | _, Level (from, sl, lids) ->
            List.iter (fun lid ->
                Printf.printf "level %s %d %s %d\n" name from (lid_text lid) sl)
              lids)
        lines)
    lines
