(* A folder with a fabric of 802.1Q switches, each of which gets a script, NAME.bridge, as
   [knotless export --to l2] writes it. Trusted: what is read here is what the verdict is about.

   Only what such a script has is read, in its order: a bridge with VLANs that learns nothing, whose
   addresses are static, so that none is ever forgotten, and whose ports come up last.

   Table 0 finds the VLAN of a frame, and puts a tag on if it has none; each VLAN has a table of its
   own, with its static addresses, and floods what is not among them. *)
open Checker
open Text

let suffix = ".bridge"
let are_in texts = List.exists (fun (name, _) -> has_suffix suffix name) texts

type port = {
  mutable pvid : int option;
  mutable vlans : (int * (bool * int)) list;  (* whether without a tag, and the line *)
  mutable silent : bool;  (* it learns nothing *)
  mutable up : bool;
}

type bridge = {
  name : string;
  ports : (int, port) Hashtbl.t;
  mutable macs : ((int * int) * (int * int)) list;  (* by VLAN and address: the port, and the line *)
  mutable up : bool;
}

(* The ports of a new bridge are in VLAN 1. *)
let new_port () = { pvid = Some 1; vlans = [ (1, (true, 0)) ]; silent = false; up = false }

let port_of_device bridge device =
  let prefix = bridge.name ^ "-eth" in
  let length = String.length prefix in
  if String.length device <= length || String.sub device 0 length <> prefix then
    unreadable "the ports of %s are %sN, not %s" bridge.name prefix device;
  let text = String.sub device length (String.length device - length) in
  let number = below Openflow.port_limit text in
  if number = 0 || string_of_int number <> text then unreadable "not a port: %s" device;
  match Hashtbl.find_opt bridge.ports number with
  | Some port -> (number, port)
  | None -> unreadable "fabric.json has no port %d of %s" number bridge.name

let vlan text =
  let value = below 4095 text in
  if value = 0 || string_of_int value <> text then unreadable "not a VLAN: %s" text;
  value

let member (port : port) vlan = List.mem_assoc vlan port.vlans

let leave (port : port) vlan =
  port.vlans <- List.remove_assoc vlan port.vlans;
  if port.pvid = Some vlan then port.pvid <- None

let join (port : port) line vlan flags =
  if member port vlan then unreadable "VLAN %d occurs twice" vlan;
  let pvid, flags =
    match flags with "pvid" :: more -> (true, more) | _ -> (false, flags) in
  if flags <> [] && flags <> [ "untagged" ] then unreadable "not a membership";
  if pvid && port.pvid <> None then unreadable "a second PVID";
  if pvid then port.pvid <- Some vlan;
  port.vlans <- (vlan, (flags <> [], line)) :: port.vlans

(* Lines of the batch of the command bridge. *)
let configure bridge (line, text) =
  let port device = snd (port_of_device bridge device) in
  match String.split_on_char ' ' text with
  | [ "vlan"; "del"; "dev"; device; "vid"; "1"; "self" ] when device = bridge.name -> ()
  | [ "link"; "set"; "dev"; device; "learning"; "off" ] -> (port device).silent <- true
  | "vlan" :: ("add" | "del") :: _ when bridge.macs <> [] ->
    unreadable "the addresses follow all memberships"
  | [ "vlan"; "del"; "dev"; device; "vid"; number ] -> leave (port device) (vlan number)
  | "vlan" :: "add" :: "dev" :: device :: "vid" :: number :: flags ->
    join (port device) line (vlan number) flags
  | [ "fdb"; "replace"; address; "dev"; device; "master"; "static"; "vlan"; number ] ->
    let number = vlan number and out, port = port_of_device bridge device in
    if not (member port number) then unreadable "port %d is not in VLAN %d" out number;
    let key = (number, mac address) in
    (* Bridges flood frames to groups without a look at their addresses. *)
    if (snd key lsr 40) land 1 = 1 then unreadable "the address of a group: %s" address;
    bridge.macs <- (key, (out, line)) :: bridge.macs
  | _ -> unreadable "a command that is not covered: %s" text

(* Lines of the batch of the command ip, which is the last. *)
let bring_up bridge (_, text) =
  match String.split_on_char ' ' text with
  | [ "link"; "set"; "dev"; device; "up" ] when device = bridge.name -> bridge.up <- true
  | [ "link"; "set"; "dev"; device; "up" ] -> (snd (port_of_device bridge device)).up <- true
  | _ -> unreadable "a command that is not covered: %s" text

let head name =
  [ "ip link set dev " ^ name ^ " down";
    "ip link set dev " ^ name ^ " type bridge vlan_filtering 1 stp_state 0 mcast_snooping 0";
    "bridge -batch - <<'END'" ]

let tail = "ip -batch - <<'END'"

let read_script bridge file text =
  let each apply (line, text) =
    within (Printf.sprintf "%s:%d" file line) (fun () -> apply bridge (line, text)) in
  let rec batch apply = function
    | (_, "END") :: rest -> rest
    | line :: rest -> each apply line; batch apply rest
    | [] -> unreadable "%s: it ends early" file in
  let expect wanted = function
    | (_, text) :: rest when text = wanted -> rest
    | (line, _) :: _ -> unreadable "%s:%d: %s is expected" file line wanted
    | [] -> unreadable "%s: it ends early" file in
  let is_command (_, line) = line.[0] <> '#' in
  let lines = List.filter is_command (numbered_lines text) in
  let lines = List.fold_left (Fun.flip expect) lines (head bridge.name) in
  let lines = expect tail (batch configure lines) in
  (match batch bring_up lines with
   | [] -> ()
   | (line, _) :: _ -> unreadable "%s:%d: more commands" file line);
  within file (fun () ->
      if not bridge.up then unreadable "%s is never brought up" bridge.name;
      Hashtbl.iter (fun number (port : port) ->
          if not port.silent then unreadable "port %d learns addresses" number;
          if not port.up then unreadable "port %d is never brought up" number)
        bridge.ports;
      let keys = List.map fst bridge.macs in
      if List.length (List.sort_uniq compare keys) <> List.length keys then
        unreadable "an address occurs twice in a VLAN")

let rule =
  { r_port = any; r_dst = any; r_src = any; r_vid = any; r_pcp = any; r_meta = any; r_more = false;
    r_acts = []; r_goto = None; r_write = any; r_writes = [] }

(* A port with its VLANs, and the ports of a VLAN, in order of their numbers. *)
let ports_in_order bridge =
  List.sort compare (Hashtbl.fold (fun number port all -> (number, port) :: all) bridge.ports [])

let entries bridge =
  let entry table priority line rule = { Openflow.table; priority; rule; line } in
  let ports = ports_in_order bridge in
  let vlans =
    List.sort_uniq compare (List.concat_map (fun (_, port) -> List.map fst port.vlans) ports) in
  let tables = Hashtbl.create 64 in
  List.iteri (fun place vlan -> Hashtbl.add tables vlan (place + 1)) vlans;
  let table vlan = Hashtbl.find tables vlan in
  (* With the tag of the VLAN; and of the PVID, with a tag of VLAN 0, which keeps its priority, or
     without any. *)
  let entering (number, (port : port)) =
    let of_vlan (vlan, (_, line)) =
      let from vid acts =
        entry 0 0 line
          { rule with r_port = (number, ones 32); r_vid = (vid, ones 13); r_acts = acts;
                      r_goto = Some (table vlan) } in
      let tagged = from (0x1000 lor vlan) [] in
      if port.pvid = Some vlan then
        [ tagged; from 0x1000 [ SetVid (0x1000 lor vlan) ];
          from 0 [ Push; SetVid (0x1000 lor vlan) ] ]
      else [ tagged ] in
    List.concat_map of_vlan port.vlans in
  let static ((vlan, address), (out, line)) =
    let untagged, _ = List.assoc vlan (Hashtbl.find bridge.ports out).vlans in
    entry (table vlan) 1 line
      { rule with r_dst = (address, ones 48);
                  r_acts = (if untagged then [ Pop; Output out ] else [ Output out ]) } in
  let flood vlan =
    let out wanted =
      List.filter_map (fun (number, (port : port)) ->
          match List.assoc_opt vlan port.vlans with
          | Some (untagged, _) when untagged = wanted -> Some (Output number)
          | _ -> None)
        ports in
    entry (table vlan) 0 0 { rule with r_acts = out false @ (Pop :: out true) } in
  List.concat_map entering ports @ List.rev_map static bridge.macs @ List.map flood vlans

let of_texts texts =
  let fabric_text = Folder.fabric_text texts in
  let switch_names, channel_names, channels, first_host, fabric =
    within "fabric.json" (fun () -> Folder.fabric_of_json (Json.of_string fabric_text)) in
  let by_name = Folder.texts_by_name "switch" switch_names [ suffix ] texts in
  let judged = fabric (fun _ -> []) (fun channel _ -> channel) in
  let bridges =
    Array.map (fun name -> { name; ports = Hashtbl.create 64; macs = []; up = false }) switch_names in
  (* Each port is entered by one channel. *)
  Array.iteri (fun channel _ ->
      let switch, port = judged.entering channel in
      Hashtbl.add bridges.(switch).ports port (new_port ()))
    channel_names;
  let read bridge =
    let file = bridge.name ^ suffix in
    match Hashtbl.find_opt by_name file with
    | None -> refused "%s is missing: what %s holds is not known" file bridge.name
    | Some text -> read_script bridge file text; entries bridge in
  let entries = Array.map read bridges in
  let switches = Array.map (fun of_switch -> Openflow.switch of_switch []) entries in
  { Folder.kind = Bridges; fabric_text; fabric; channels; channel_names; first_host; switch_names;
    entries; switches }

(* Static addresses. *)
let count (folder : Folder.t) =
  let is_static (entry : Openflow.entry) = entry.table > 0 && entry.priority = 1 in
  Array.fold_left (fun n entries -> n + List.length (List.filter is_static entries)) 0 folder.entries
