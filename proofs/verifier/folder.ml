(* A folder with a fabric and the rules of its switches. Trusted: what is read here is what the
   verdict is about. *)
open Checker
open Text

type kind = Rules | Bridges | Routes | Lids
(* What the files of switches have: OpenFlow rules, VLANs and static addresses, routes to addresses
   of IPv4, or the forwarding tables of InfiniBand. *)

type t = {
  kind : kind;
  fabric_text : string;
  fabric : (int -> switch list) -> (int -> int -> int) -> fabric;
  (* by what each switch may hold, and by the queue of each channel and priority *)
  channels : (string, int) Hashtbl.t;  (* of an output port, SWITCH:PORT, and of a host's name *)
  channel_names : string array;
  first_host : int;  (* channels from here on are those of hosts, in the order of hosts *)
  switch_names : string array;
  entries : Openflow.entry list array;  (* of each switch *)
  switches : switch array;
}

(* By one number for switch and port: the checker asks at each hop. *)
module Ends = Hashtbl.Make (struct
    type t = int
    let equal (a : int) b = a = b
    let hash end_ = ((end_ lsr 32) * 37) + (end_ land 0xffffffff)
  end)

let end_key (switch, port) = (switch lsl 32) lor port

(* Switches of the specification send nothing back to the port where it came from, and routers and
   InfiniBand switches do: so a port has one number for what enters and another for what leaves. *)
let leaving port = (1 lsl 31) lor port

(* The channels of a fabric while it is read. A channel enters where its link ends, and is named by
   where it begins. *)
module Cabling = struct
  type t = {
    behind : target Ends.t;
    mutable entering : (int * int) list;  (* the last one first *)
    mutable names : string list;
    mutable count : int;
  }

  let create () = { behind = Ends.create 1000; entering = []; names = []; count = 0 }

  let attach cabling end_ target = Ends.add cabling.behind (end_key end_) target
  let is_attached cabling end_ = Ends.mem cabling.behind (end_key end_)

  let add_channel cabling enters name =
    cabling.entering <- enters :: cabling.entering;
    cabling.names <- name :: cabling.names;
    cabling.count <- cabling.count + 1

  let names cabling = Array.of_list (List.rev cabling.names)

  (* The fabric with hosts that have these addresses, by what each switch may hold, and by the queue
     of each channel and priority. *)
  let fabric cabling first_host addresses versions queue =
    let entering = Array.of_list (List.rev cabling.entering) in
    { versions;
      leaving = (fun switch port ->
          Option.value (Ends.find_opt cabling.behind (end_key (switch, port))) ~default:Nowhere);
      entering = Array.get entering;
      may_fail = (fun _ -> false);
      from_host = (fun host -> first_host + host);
      hosts = List.init (Array.length addresses) Fun.id;
      mac = Array.get addresses;
      broadcast = ones 48;
      queue }
end

let hosts folder = Array.length folder.channel_names - folder.first_host
let host_name folder host = folder.channel_names.(folder.first_host + host)
let rules folder = Array.fold_left (fun n entries -> n + List.length entries) 0 folder.entries

(* Whether a rule tests what frames do not have here. *)
let tests_more folder =
  let tests (entry : Openflow.entry) = entry.rule.r_more in
  Array.exists (List.exists tests) folder.entries

let address_text folder address =
  match folder.kind with
  | Routes when address <= ones 32 -> ipv4_text address
  | Lids when address <= ones 16 -> lid_text address
  | Rules | Bridges | Routes | Lids -> mac_text address

let class_text folder (cube, exceptions) =
  let text (value, mask) =
    match folder.kind with
    | Rules | Bridges -> mac_text value ^ "/" ^ mac_text mask
    | Routes -> prefix_text (value, mask)
    | Lids -> lids_text (value, mask) in
  let but = if exceptions = [] then [] else "but" :: List.map text exceptions in
  String.concat " " (text cube :: but)

(* Whether classes contain every address of so many bits, and no other: by [cover_sound] of
   [Proof.v], with the lower bits. *)
let cover bits classes =
  let high = ones 48 - ones bits in
  let is_low ((value, mask), _) = mask land high = high && value land high = 0 in
  let low ((value, mask), _) = (value land ones bits, mask land ones bits) in
  List.for_all is_low classes && exceptions_follow classes
  && Checker.cover bits (List.map low classes)

(* Files that count, sorted by name; [tags]: whether hosts may tag their frames. *)
let file_names ~tags path =
  let all = try Sys.readdir path with Sys_error message -> unreadable "%s" message in
  let counts name =
    name = "fabric.json"
    || List.exists (fun suffix -> has_suffix suffix name)
      [ ".flows"; ".groups"; ".bridge"; ".routes"; ".lft" ] in
  if Array.mem "tags.json" all && not tags then
    refused "tags.json: hosts tag their frames, and the proof is of untagged ones";
  List.sort compare (List.filter counts (Array.to_list all))

let line_keys = [ "rate_mbps"; "delay_us"; "jitter_us"; "loss" ]
let host_keys = [ "name"; "mac"; "ip"; "switch"; "port"; "ip_invented"; "server" ] @ line_keys

(* Links lose nothing: it is assumed, so that it has to be so. *)
let lossless value =
  let loses = function
    | Json.Object members ->
      (match List.assoc_opt "loss" members with
       | None -> false
       | Some (Json.Number n) -> float_of_string_opt n <> Some 0.
       | Some _ -> true)
    | _ -> false in
  if loses value then refused "fabric.json: links that lose frames are not covered"

let check_printable name =
  if name = "" || String.exists (fun c -> c <= ' ' || c >= '\127') name then
    unreadable "the name %S" name

(* Of a file too. *)
let check_name name =
  if name = "" || String.exists (fun c -> c <= ' ' || c = '/' || c = '\127') name then
    unreadable "the name %S" name

let switch_name value =
  Json.only [ "name"; "dpid"; "hub" ] value;
  let name = Json.text "name" value in
  (match value with
   | Json.Object members when List.assoc_opt "hub" members = Some (Json.Bool true) ->
     refused "fabric.json: %s is a hub, which is not covered" name
   | _ -> ());
  check_name name;
  name

let index_of kind names =
  let index = Hashtbl.create 1000 in
  List.iteri (fun i name ->
      if Hashtbl.mem index name then unreadable "%s %s occurs twice" kind name;
      Hashtbl.add index name i)
    names;
  index

let fabric_of_json top =
  Json.only [ "name"; "switches"; "hosts"; "links"; "grid" ] top;
  let names = List.map switch_name (Json.list "switches" top) in
  let index = index_of "switch" names in
  let switch_names = Array.of_list names in
  let port_of switch_key port_key value =
    let name = Json.text switch_key value in
    match Hashtbl.find_opt index name with
    | None -> unreadable "switch %s is missing" name
    | Some switch ->
      let port = below Openflow.port_limit (Json.number port_key value) in
      if port = 0 then unreadable "port 0 of %s" name;
      (switch, port) in
  let name (switch, port) = Printf.sprintf "%s:%d" switch_names.(switch) port in
  let cabling = Cabling.create () in
  let attach end_ target =
    if Cabling.is_attached cabling end_ then unreadable "port %s occurs twice" (name end_);
    Cabling.attach cabling end_ target in
  List.iter (fun value ->
      Json.only ([ "a"; "a_port"; "b"; "b_port" ] @ line_keys) value;
      lossless value;
      let a = port_of "a" "a_port" value and b = port_of "b" "b_port" value in
      attach a (ToChannel cabling.count);
      Cabling.add_channel cabling b (name a);
      attach b (ToChannel cabling.count);
      Cabling.add_channel cabling a (name b))
    (Json.list "links" top);
  let first_host = cabling.count in
  let host number value =
    Json.only host_keys value;
    lossless value;
    let port = port_of "switch" "port" value in
    attach port (ToHost number);
    let host_name = Json.text "name" value in
    if host_name = "" || String.exists (fun c -> c < ' ') host_name then
      unreadable "the name %S" host_name;
    Cabling.add_channel cabling port host_name;
    mac (Json.text "mac" value) in
  let macs = List.mapi host (Json.list "hosts" top) in
  if List.length (List.sort_uniq compare macs) <> List.length macs then
    unreadable "two hosts have one address";
  let channel_names = Cabling.names cabling in
  let channels = index_of "channel" (Array.to_list channel_names) in
  let fabric = Cabling.fabric cabling first_host (Array.of_list macs) in
  (switch_names, channel_names, channels, first_host, fabric)

(* The text of each file that counts, sorted by name. *)
let texts ~tags path =
  List.map (fun name -> (name, read_file (Filename.concat path name))) (file_names ~tags path)

let fabric_text texts =
  match List.assoc_opt "fabric.json" texts with
  | Some text -> text
  | None -> unreadable "fabric.json is missing"

(* The texts by the names of their files, each of which is one of these names with a suffix. *)
let texts_by_name kind names suffixes texts =
  let own = Hashtbl.create 1000 in
  Array.iter (fun name ->
      List.iter (fun suffix -> Hashtbl.replace own (name ^ suffix) ()) suffixes)
    names;
  let by_name = Hashtbl.create 1000 in
  List.iter (fun (file, text) ->
      if file <> "fabric.json" && not (Hashtbl.mem own file) then
        refused "%s: fabric.json has no such %s" file kind;
      Hashtbl.replace by_name file text)
    texts;
  by_name

let of_texts texts =
  let fabric_text = fabric_text texts in
  let switch_names, channel_names, channels, first_host, fabric =
    within "fabric.json" (fun () -> fabric_of_json (Json.of_string fabric_text)) in
  let by_name = texts_by_name "switch" switch_names [ ".flows"; ".groups" ] texts in
  let read_switch name =
    let flows = name ^ ".flows" and groups = name ^ ".groups" in
    match Hashtbl.find_opt by_name flows with
    | None -> refused "%s is missing: what %s holds is not known" flows name
    | Some text ->
      let group_text = Option.value (Hashtbl.find_opt by_name groups) ~default:"" in
      let entries = Openflow.entries flows text in
      (entries, Openflow.switch entries (Openflow.groups groups group_text)) in
  let read_switches = Array.map read_switch switch_names in
  let switches = Array.map snd read_switches in
  { kind = Rules; fabric_text; fabric; channels; channel_names; first_host; switch_names; switches;
    entries = Array.map fst read_switches }

(* What each switch holds in one of several folders; each content once. *)
let versions folders switch =
  List.fold_left (fun held folder ->
      let content = folder.switches.(switch) in
      if List.mem content held then held else held @ [ content ])
    [] folders

(* What was read, a line for each link, host, rule and group, in a form that depends on nothing but
   its meaning. *)
let print folder =
  let fabric = folder.fabric (fun switch -> [ folder.switches.(switch) ]) (fun channel _ -> channel) in
  let pattern (value, mask) = Printf.sprintf "0x%x/0x%x" (value land mask) mask in
  let action = function
    | Push -> "push"
    | Pop -> "pop"
    | SetVid vid -> Printf.sprintf "vid:%d" vid
    | SetPcp pcp -> Printf.sprintf "pcp:%d" pcp
    | Output port -> Printf.sprintf "output:%d" port
    | Back -> "back"
    | Group id -> Printf.sprintf "group:%d" id in
  let actions list = "[" ^ String.concat " " (List.map action list) ^ "]" in
  Array.iteri (fun channel name ->
      let switch, port = fabric.entering channel in
      let host = channel - folder.first_host in
      Printf.printf "%s %s to %s:%d%s\n" (if host < 0 then "channel" else "host") name
        folder.switch_names.(switch) port
        (if host < 0 then "" else " " ^ mac_text (fabric.mac host)))
    folder.channel_names;
  Array.iteri (fun switch name ->
      List.iter (fun { Openflow.table; priority; rule = r; _ } ->
          Printf.printf
            "rule %s table %d priority %d in_port %s eth_dst %s eth_src %s vlan_vid %s vlan_pcp %s \
             metadata %s more %b actions %s write %s goto %s\n"
            name table priority (pattern r.r_port) (pattern r.r_dst) (pattern r.r_src)
            (pattern r.r_vid) (pattern r.r_pcp) (pattern r.r_meta) r.r_more (actions r.r_acts)
            (String.concat "|" (List.map pattern (r.r_write :: r.r_writes)))
            (match r.r_goto with None -> "none" | Some table -> string_of_int table))
        folder.entries.(switch);
      List.iter (fun (id, content) ->
          let kind, buckets =
            match content with
            | All l -> ("all", List.map actions l)
            | Select l -> ("select", List.map actions l)
            | Failover l ->
              ("ff", List.map (fun (port, l) -> Printf.sprintf "%d:%s" port (actions l)) l) in
          Printf.printf "group %s %d %s %s\n" name id kind (String.concat " " buckets))
        folder.switches.(switch).groups)
    folder.switch_names
