(* Parts of a fabric that fail: a link, or a switch with all its links. Trusted.

   Ports of a link that has failed are down at both ends, which notice it one after the other, or see
   it return. What is to leave there is lost, before they have noticed and after. *)
open Checker
open Text

type t = {
  name : string;
  channels : int list;  (* of the links that fail *)
  ports_down : int list array;  (* of each switch, the ports that go down *)
  switch : int option;  (* that fails, with its hosts *)
}

(* A link has two channels with consecutive numbers: each begins where the other one enters. *)
let opposite channel = channel lxor 1
let switch_entered fabric channel = fst (fabric.entering channel)

let of_part (folder : Folder.t) fabric part =
  let links = List.init folder.first_host Fun.id in
  let name, switch, channels =
    match part with
    | Proof_file.Link port ->
      (match Hashtbl.find_opt folder.channels port with
       | Some channel when channel < folder.first_host ->
         ("link " ^ port, None, [ channel; opposite channel ])
       | _ -> refused "there is no link at %s" port)
    | Switch name ->
      let switches = List.init (Array.length folder.switch_names) Fun.id in
      (match List.find_opt (fun switch -> folder.switch_names.(switch) = name) switches with
       | None -> refused "there is no switch %s" name
       | Some switch ->
         let touches channel =
           switch_entered fabric channel = switch
           || switch_entered fabric (opposite channel) = switch in
         ("switch " ^ name, Some switch, List.filter touches links)) in
  let ports_down = Array.make (Array.length folder.switches) [] in
  List.iter (fun channel ->
      let switch, port = fabric.entering (opposite channel) in
      ports_down.(switch) <- port :: ports_down.(switch))
    channels;
  { name; channels; ports_down; switch }

let noticed failure switch content = { content with down = failure.ports_down.(switch) }

(* While it fails or returns: each end of a link may have noticed it, or not. *)
let during (folder : Folder.t) fabric failure =
  let versions switch =
    let content = folder.switches.(switch) in
    if failure.ports_down.(switch) = [] then [ content ]
    else [ content; noticed failure switch content ] in
  let lost = Array.make (Array.length folder.channel_names) false in
  List.iter (fun channel -> lost.(channel) <- true) failure.channels;
  { fabric with versions; may_fail = Array.get lost }

(* When all ends have noticed it, for the hosts that remain. *)
let after (folder : Folder.t) fabric failure =
  let versions switch = [ noticed failure switch folder.switches.(switch) ] in
  let remains host =
    Some (switch_entered fabric (fabric.from_host host)) <> failure.switch in
  { fabric with versions; hosts = List.filter remains fabric.hosts }

(* The addresses of hosts, with the hosts whose frames to these are delivered: those that are not
   cut off from there by the pairs (source, destination) of [cut]. *)
let deliveries fabric cut =
  let cut_off = Hashtbl.create 1000 in
  List.iter (fun (source, destination) -> Hashtbl.add cut_off destination source) cut;
  let by_senders = Hashtbl.create 10 in
  List.iter (fun host ->
      let without = Hashtbl.find_all cut_off host in
      let sends other = other = host || not (List.mem other without) in
      let senders = List.filter sends fabric.hosts in
      let before = Option.value (Hashtbl.find_opt by_senders senders) ~default:[] in
      Hashtbl.replace by_senders senders (((fabric.mac host, ones 48), []) :: before))
    fabric.hosts;
  Hashtbl.fold (fun senders classes all -> ({ fabric with hosts = senders }, classes) :: all)
    by_senders []
