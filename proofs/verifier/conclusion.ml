(* What an accepted proof means, in words. Trusted: it says what is proven, and what is assumed. *)
open Checker

(* Failures that are listed with what they cut. *)
let most_shown = 10

let counted n one = Printf.sprintf "%d %s%s" n one (if n = 1 then "" else "s")

(* The frames of hosts, and the theorem on them. *)
let frames sent ~delivery =
  match sent with
  | Explain.Own ->
    ((if delivery then "check_all_sound" else "check_all_deadlock_free"),
     "every frame that a host sends untagged, from its own\naddress, to any of the 2^48 addresses")
  | Any { tags; sources } ->
    ("check_all_any_sound",
     Printf.sprintf "every frame that a host can send, %s,\n%s, to any of the 2^48 addresses"
       (if tags then "with any tags" else "untagged")
       (if sources then "from any source" else "from its own address"))

let print_proven folders sent ~delivery =
  let several = List.length folders > 1 in
  let theorem, subject = frames sent ~delivery in
  Printf.printf
    "Proven in Coq (%s), for %s%s:\n\
    \  - no state that the network can reach is deadlocked, whatever the sizes of its buffers;\n\
    \  - as long as there are frames, the first one of some queue can move;\n\
    \  - when hosts stop sending, the network is empty after a bounded number of moves: no loops%s\n"
    theorem subject
    (if several then
       Printf.sprintf ", while each switch may hold the rules of any of\n%d folders, from one frame to the next"
         (List.length folders)
     else "")
    (if delivery && sent = Own then ";" else ".");
  if delivery && sent <> Own then
    print_string
      "Also (check_all_sound), if hosts send untagged frames from their own addresses only:\n";
  if delivery then
    Printf.printf
      "  - then%s a frame to the address of another host has reached that host, once, and no other,\n\
      \    and a broadcast each other host, once.\n"
      (if List.length folders > 2 then ", if it has met only rules of the last two folders,\n   " else "")
  else
    print_string
      (if several then
         "Not claimed: that frames arrive. While the rules change, frames may be lost or reach others.\n"
       else "Not claimed: that frames arrive. They may be lost or reach others.\n")

let print_failures sent failures =
  let number = List.length failures in
  Printf.printf
    "Failures of one part at a time: %d.\n\
    \  - While it fails or returns, the same but for delivery (%s): each switch\n\
    \    at its links may have seen it or not, all its ports there at once; what is to leave there\n\
    \    may be lost.\n"
    number
    (fst (frames sent ~delivery:false));
  let claimed = List.filter_map (fun (name, cut) -> Option.map (fun n -> (name, n)) cut) failures in
  let cutting = List.filter (fun (_, pairs) -> pairs > 0) claimed in
  if claimed <> [] then begin
    Printf.printf
      "  - When all of these have seen it (check_sound), if hosts send untagged frames from their\n\
      \    own addresses only, those between hosts that remain arrive, once, and nowhere else,\n\
      \    after %s of these failures%s.\n\
      \    Broadcasts may be lost until a controller restores them.\n"
      (if List.length claimed = number then "each" else string_of_int (List.length claimed))
      (if cutting = [] then "" else ", but for pairs that are cut");
    List.iteri (fun i (name, pairs) ->
        if i < most_shown then Printf.printf "    %s cuts %s\n" name (counted pairs "pair"))
      cutting;
    if List.length cutting > most_shown then
      Printf.printf "    and %d more of them cut %d\n" (List.length cutting - most_shown)
        (List.fold_left (fun n (_, pairs) -> n + pairs) 0
           (List.filteri (fun i _ -> i >= most_shown) cutting))
  end;
  if List.length claimed < number then
    Printf.printf "  - Not claimed: who receives frames after %d of them.\n"
      (number - List.length claimed)

let has_failover (folder : Folder.t) =
  Array.exists (fun switch ->
      List.exists (fun (_, group) -> match group with Failover _ -> true | _ -> false)
        switch.groups)
    folder.switches

let print folders files condition sent ~delivery failures =
  let folder : Folder.t = List.hd folders in
  let several = List.length folders > 1 in
  Printf.printf "accepted: the fabric cannot deadlock %s%s%s\n\n" condition
    (if several then ", while its rules change"
     else if failures <> [] then
       Printf.sprintf ", nor if one of %d parts fails" (List.length failures)
     else "")
    (if delivery then "" else "; that frames arrive is not claimed");
  print_proven folders sent ~delivery;
  if failures <> [] then print_failures sent failures;
  let bridges = folder.kind = Bridges in
  let count folder = if bridges then Bridges.count folder else Folder.rules folder in
  Printf.printf
    "Judged: %d switches, %d hosts, %d %s in %d files, whose SHA-256 the proof names.\n\
     Assumed:\n"
    (Array.length folder.switch_names) (Folder.hosts folder)
    (List.fold_left (fun n folder -> n + count folder) 0 folders)
    (if bridges then "static addresses" else "rules")
    files;
  if several then
    print_string
      "  - the files say how switches are cabled, which does not change, and what they hold: a switch\n\
      \    takes the rules of a folder all at once, and only frames that were sent while switches\n\
      \    held rules of these folders are in the network;\n"
  else if failures <> [] then
    print_string
      "  - the files say what switches hold, and how they are cabled; that does not change, but that\n\
      \    one part may fail, and return;\n"
  else begin
    print_string
      "  - the files say what switches hold, and how they are cabled; that does not change;\n";
    if has_failover folder then
      print_string "  - no port that a fast-failover group watches is down;\n"
  end;
  Printf.printf
    "%s\
    \  - each queue of an input (%s) has room for a longest frame that nobody\n\
    \    else can take, and holds its sender back when it is full;\n\
     %s\
    \  - hosts take what arrives; links lose and change nothing%s;\n\
    \  - the compiler of OCaml, the extraction from Coq and the reader of files are correct.\n"
    (if bridges then
       "  - switches do what IEEE 802.1Q says and the scripts configure: they learn nothing, forget\n\
       \    no static address, and flood their VLAN with frames to others; they store a frame before\n\
       \    they send it on;\n"
     else "  - switches do what OpenFlow 1.3 says, and store a frame before they send it on;\n")
    (if condition = "under PAUSE" then "one for each link" else "one for each link and priority")
    (if bridges then ""
     else
       Printf.sprintf
         "  - of several choices (groups, hashes, rules of one priority) a switch may take any%s;\n"
         (if List.exists Folder.tests_more folders then
            ",\n    and a rule that tests other fields, such as the EtherType, may match or not"
          else ""))
    (if failures = [] then "" else " while they are up")

(* Of a fabric of routers. *)
let print_routers (folder : Folder.t) files condition =
  let hosts = Folder.hosts folder and under_pfc = condition <> "under PAUSE" in
  Printf.printf
    "accepted: the fabric cannot deadlock %s\n\n\
     Proven in Coq (check_sound), for every IPv4 packet that a host sends, to any address:\n\
    \  - no state that the network can reach is deadlocked, whatever the sizes of its buffers;\n\
    \  - as long as there are packets, the first one of some queue can move;\n\
    \  - when hosts stop sending, the network is empty after a bounded number of moves: no loops;\n\
    \  - then a packet to the address that fabric.json has of another host has reached that host,\n\
    \    once, and no other.\n\
     Judged: %d routers, %d hosts (%d with an address), %d routes in %d files, whose SHA-256 the\n\
     proof names.\n\
     Assumed:\n\
    \  - the files say what routers hold, how they are cabled, and where packets enter; that does\n\
    \    not change;\n\
    \  - routers go by the longest prefix, of several next hops by any, and store a packet before\n\
    \    they send it on;\n\
     %s\
    \  - each queue of an input (%s) has room for a longest packet that\n\
    \    nobody else can take, and holds its sender back when it is full;\n\
    \  - hosts, routers and other devices take what is for them; links lose and change nothing;\n\
    \  - the compiler of OCaml, the extraction from Coq and the reader of files are correct.\n"
    condition
    (Array.length folder.switch_names)
    hosts (Routes.receivers folder) (Routes.count folder) files
    (if under_pfc then "  - packets keep their priority from router to router;\n" else "")
    (if under_pfc then "one for each link and priority" else "one for each link")

(* Of an InfiniBand subnet. *)
let print_subnet (folder : Folder.t) files condition =
  Printf.printf
    "accepted: the subnet cannot deadlock %s\n\n\
     Proven in Coq (check_sound), for every packet that a host sends, to any unicast LID:\n\
    \  - no state that the network can reach is deadlocked, whatever the sizes of its buffers;\n\
    \  - as long as there are packets, the first one of some queue can move;\n\
    \  - when hosts stop sending, the network is empty after a bounded number of moves: no loops;\n\
    \  - then a packet to a LID of another host has reached that host, once, and no other.\n\
     Not claimed: anything of packets that switches send themselves, and of multicast.\n\
     Judged: %d switches, %d hosts with %d LIDs, %d entries in %d files, whose SHA-256 the proof\n\
     names.\n\
     Assumed:\n\
    \  - the files say what switches hold, how they are cabled, and which LIDs hosts have; that does\n\
    \    not change;\n\
    \  - switches go by the LID, also back to the port by which a packet came, by any of several\n\
    \    ports, and send a packet on only where there is room for all of it;\n\
     %s\
    \  - each queue of an input (one for each link and virtual lane) has room for a longest packet\n\
    \    that nobody else can take, and gives credits for no more than it has room for;\n\
    \  - hosts and switches take what is for them, and hosts keep what they send to their own LIDs;\n\
    \  - links lose and change nothing;\n\
    \  - the compiler of OCaml, the extraction from Coq and the reader of files are correct.\n"
    condition
    (Array.length folder.switch_names)
    (Lft.hosts folder) (Folder.hosts folder) (Lft.count folder) files
    (if Lft.has_lanes folder then
       "  - packets keep their SL, which is the one that the files give for where they come from and\n\
       \    go to, or any if they give none;\n"
     else "  - all packets are in virtual lane 0;\n")
