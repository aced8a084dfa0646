(* A folder with a fabric of routers and what each does with IPv4 addresses. Trusted: what is read
   here is what the verdict is about.

   Routers become switches of the specification. Its addresses have 48 bits; IPv4 has those whose
   highest 16 are 0, and nothing is claimed of others. A prefix is a pattern of the destination, and
   its length is its priority; that any one of several next hops is taken is a rule for each, all of
   one priority. *)
open Checker
open Text

let suffix = ".routes"

let are_in texts = List.exists (fun (name, _) -> has_suffix suffix name) texts

(* Of hosts whose address is not known, which is none of IPv4: nothing is sent to it. *)
let no_address host = (2 lsl 40) lor host

type ports = {
  numbers : (string, int) Hashtbl.t array;  (* of each router, from 1 *)
  names : string list array;  (* the last one first *)
}

let port_number ports (router, name) = Hashtbl.find_opt ports.numbers.(router) name

let add_port ports routers (router, name) =
  Folder.check_printable name;
  if Hashtbl.mem ports.numbers.(router) name then
    unreadable "port %s:%s occurs twice" routers.(router) name;
  let number = Hashtbl.length ports.numbers.(router) + 1 in
  Hashtbl.add ports.numbers.(router) name number;
  ports.names.(router) <- name :: ports.names.(router);
  number

let fabric_of_json top =
  (* What the folder was read from is the word of who has written it. *)
  Json.only [ "name"; "routers"; "hosts"; "links"; "read_from" ] top;
  let router_name = function
    | Json.Text name -> Folder.check_name name; name
    | _ -> unreadable "a router is no text" in
  let names = List.map router_name (Json.list "routers" top) in
  let index = Folder.index_of "router" names in
  let routers = Array.of_list names in
  let ports = { numbers = Array.map (fun _ -> Hashtbl.create 64) routers;
                names = Array.map (fun _ -> []) routers } in
  let end_of router_key port_key value =
    let name = Json.text router_key value in
    match Hashtbl.find_opt index name with
    | None -> unreadable "router %s is missing" name
    | Some router -> (router, Json.text port_key value) in
  let cabling = Folder.Cabling.create () in
  (* A port, the number of what enters there, and what is sent out of it. *)
  let attach (router, name) target =
    let number = add_port ports routers (router, name) in
    Folder.Cabling.attach cabling (router, Folder.leaving number) target;
    (router, number) in
  let name (router, port) = Printf.sprintf "%s:%s" routers.(router) port in
  List.iter (fun value ->
      Json.only [ "a"; "a_port"; "b"; "b_port" ] value;
      let a = end_of "a" "a_port" value and b = end_of "b" "b_port" value in
      let from_a = cabling.count in
      let enters_a = attach a (ToChannel from_a) in
      let enters_b = attach b (ToChannel (from_a + 1)) in
      Folder.Cabling.add_channel cabling enters_b (name a);
      Folder.Cabling.add_channel cabling enters_a (name b))
    (Json.list "links" top);
  let first_host = cabling.count in
  let host number value =
    Json.only [ "name"; "router"; "port"; "address" ] value;
    let host_name = Json.text "name" value in
    Folder.check_name host_name;
    let address =
      match value with
      | Json.Object members when List.mem_assoc "address" members ->
        Some (ipv4 (Json.text "address" value))
      | _ -> None in
    let target = if address = None then Nowhere else ToHost number in
    let enters = attach (end_of "router" "port" value) target in
    Folder.Cabling.add_channel cabling enters host_name;
    Option.value address ~default:(no_address number) in
  let addresses = Array.of_list (List.mapi host (Json.list "hosts" top)) in
  if List.length (List.sort_uniq compare (Array.to_list addresses)) <> Array.length addresses then
    unreadable "two hosts have one address";
  (* The broadcast address is in no class, see [Folder.cover]. *)
  let fabric = Folder.Cabling.fabric cabling first_host addresses in
  (routers, ports, Folder.Cabling.names cabling, first_host, fabric)

(* PREFIX via PORT.. | PREFIX link PORT.. | PREFIX local | PREFIX drop

   [via]: out of any one of these ports. [link]: the same, but what comes from one of them has
   arrived: addresses of a link between routers. [local]: an address of the router itself. *)
let entries_of_line ports router (line, text) =
  let rule r_port r_dst r_acts =
    { r_port; r_dst; r_src = any; r_vid = any; r_pcp = any; r_meta = any; r_more = false; r_acts;
      r_goto = None; r_write = any; r_writes = [] } in
  let entry priority rule = { Openflow.table = 0; priority; rule; line } in
  let port name =
    match port_number ports (router, name) with
    | Some number -> number
    | None -> unreadable "it has no port %S in fabric.json" name in
  let numbers names =
    let numbers = List.map port names in
    if numbers = [] then unreadable "no port";
    if List.length (List.sort_uniq compare numbers) <> List.length numbers then
      unreadable "a port occurs twice";
    numbers in
  match String.split_on_char ' ' text with
  | prefix_text :: what ->
    let dst, length = prefix prefix_text in
    let send number = entry (2 * length) (rule any dst [ Output (Folder.leaving number) ]) in
    let take number = entry ((2 * length) + 1) (rule (number, ones 32) dst []) in
    let entries =
      match what with
      | [ "local" ] | [ "drop" ] -> [ entry (2 * length) (rule any dst []) ]
      | "via" :: names -> List.map send (numbers names)
      | "link" :: names -> let ports = numbers names in List.map take ports @ List.map send ports
      | _ -> unreadable "not a route" in
    (dst, entries)
  | [] -> unreadable "not a route"

let entries ports router file text =
  let routes = Openflow.each_line file (entries_of_line ports router) text in
  let prefixes = List.map fst routes in
  if List.length (List.sort_uniq compare prefixes) <> List.length prefixes then
    unreadable "%s: a prefix occurs twice" file;
  List.concat_map snd routes

let read texts =
  let fabric_text = Folder.fabric_text texts in
  let routers, ports, channel_names, first_host, fabric =
    within "fabric.json" (fun () -> fabric_of_json (Json.of_string fabric_text)) in
  let by_name = Folder.texts_by_name "router" routers [ suffix ] texts in
  let read_router router name =
    match Hashtbl.find_opt by_name (name ^ suffix) with
    | None -> refused "%s%s is missing: what %s holds is not known" name suffix name
    | Some text -> entries ports router (name ^ suffix) text in
  let entries = Array.mapi read_router routers in
  let switches = Array.map (fun of_router -> Openflow.switch of_router []) entries in
  let channels = Folder.index_of "channel" (Array.to_list channel_names) in
  ({ Folder.kind = Routes; fabric_text; fabric; channels; channel_names; first_host;
     switch_names = routers; entries; switches },
   ports)

let of_texts texts = fst (read texts)

let count (folder : Folder.t) =
  let lines entries = List.sort_uniq compare (List.map (fun e -> e.Openflow.line) entries) in
  Array.fold_left (fun n entries -> n + List.length (lines entries)) 0 folder.entries

(* Hosts with an address. *)
let receivers (folder : Folder.t) =
  let fabric = folder.fabric (fun _ -> []) (fun channel _ -> channel) in
  List.length (List.filter (fun host -> fabric.mac host <= ones 32) fabric.hosts)

let flow_control (proof : Proof_file.t) priorities =
  match proof.flow_control with
  | "pause" -> "under PAUSE"
  | "pfc" ->
    let all = String.concat " and " (List.map string_of_int priorities) in
    let which = if List.length priorities = 1 then "priority" else "each of the priorities" in
    Printf.sprintf "under PFC, in %s %s" which all
  | other -> refused "flow control %s is not covered: all links have to pause" other

(* The flow control of a cycle, whose packets keep their priority. *)
let condition_of_cycle (proof : Proof_file.t) waits =
  let of_wait (wait : Proof_file.wait) = [ snd wait.holder; snd wait.requested ] in
  match List.sort_uniq compare (List.concat_map of_wait waits) with
  | [ priority ] when proof.flow_control = "pause" || List.mem priority proof.lossless ->
    flow_control proof [ priority ]
  | [ priority ] -> refused "priority %d does not pause" priority
  | _ -> refused "packets keep their priority, and the waits have several"

(* What was read, in a form that depends on nothing but its meaning. *)
let print texts =
  let folder, ports = read texts in
  let fabric = folder.fabric (fun _ -> []) (fun channel _ -> channel) in
  let names = Array.map (fun names -> Array.of_list (List.rev names)) ports.names in
  let port router number = names.(router).(number land (Folder.leaving 0 - 1) - 1) in
  Array.iteri (fun channel name ->
      let router, number = fabric.entering channel in
      let host = channel - folder.first_host in
      let known = host >= 0 && fabric.mac host <= ones 32 in
      Printf.printf "%s %s to %s:%s%s\n" (if host < 0 then "channel" else "host") name
        folder.switch_names.(router) (port router number)
        (if known then " " ^ ipv4_text (fabric.mac host) else ""))
    folder.channel_names;
  Array.iteri (fun router name ->
      List.iter (fun { Openflow.priority; rule = r; _ } ->
          let out = function Output number -> " " ^ port router number | _ -> assert false in
          Printf.printf "route %s %s%s%s\n" name (prefix_text r.r_dst)
            (if priority land 1 = 1 then " from " ^ port router (fst r.r_port) else "")
            (match r.r_acts with
             | [] -> " ends"
             | acts -> " to" ^ String.concat "" (List.map out acts)))
        folder.entries.(router))
    folder.switch_names
