(* A cycle of waits, replayed from the files with the functions of the checker. What it shows is
   checked, not proven: the specification says what a deadlock is, not that this one is reached. *)
open Checker
open Text

let channel (folder : Folder.t) name =
  match Hashtbl.find_opt folder.channels name with
  | Some channel -> channel
  | None -> refused "there is no channel %s" name

let host (folder : Folder.t) name =
  let channel = channel folder name in
  if channel < folder.first_host then refused "%s is no host" name;
  channel - folder.first_host

(* Tags of which all is known. *)
let view tags =
  List.fold_right (fun (vid, priority) below -> Tag (Some vid, Some priority, below)) tags Bottom

let queue_of fabric channel ts =
  match priority ts with Some priority -> fabric.queue channel priority | None -> assert false

let name_of (name, priority) = Printf.sprintf "%s/%d" name priority

(* The tags with which the frame of a wait may reach each channel; refuses if rules send it
   elsewhere. *)
let check_wait folder fabric (proof : Proof_file.t) (wait : Proof_file.wait) =
  let sender = host folder wait.host in
  if wait.tags <> [] && not proof.any_tags then refused "%s sends no tags" wait.host;
  if fabric.mac sender <> wait.source && not proof.any_sources then
    refused "%s sends with its own address, not with %s" wait.host
      (Folder.address_text folder wait.source);
  let channels = List.map (channel folder) wait.via in
  if List.hd channels <> fabric.from_host sender then
    refused "the channels of a frame from %s begin with %s" wait.host wait.host;
  let d = ((wait.destination, ones 48), []) and s = (wait.source, ones 48) in
  let step from next ts =
    match arrive fabric (tables_of fabric) from d s ts with
    | Divide _ | Refuse ->
      refused "%s: rules do not decide about this frame" folder.channel_names.(from)
    | Known choices ->
      List.filter_map (fun (target, ts') -> if target = ToChannel next then Some ts' else None)
        (List.concat choices) in
  (* Frames as (tags on the last channel but one, tags on the last). *)
  let rec walk frames = function
    | from :: (next :: _ as rest) ->
      let reach (_, ts) = List.map (fun ts' -> (ts, ts')) (step from next ts) in
      (match List.sort_uniq compare (List.concat_map reach frames) with
       | [] ->
         refused "rules do not send frames of %s to %s from %s to %s" wait.host
           (Folder.address_text folder wait.destination) folder.channel_names.(from)
           folder.channel_names.(next)
       | frames -> walk frames rest)
    | _ -> frames in
  let sent = view wait.tags in
  let frames = walk [ (sent, sent) ] channels in
  let queue (name, priority) = fabric.queue (channel folder name) priority in
  let rec last_two = function
    | [ a; b ] -> (a, b)
    | _ :: rest -> last_two rest
    | [] -> assert false in
  let from, next = last_two channels in
  let is_wait (ts, ts') =
    queue_of fabric from ts = queue wait.holder && queue_of fabric next ts' = queue wait.requested in
  if not (List.exists is_wait frames) then
    refused "the frame does not wait in %s for %s" (name_of wait.holder) (name_of wait.requested);
  (queue wait.holder, queue wait.requested)

let check folder fabric proof waits =
  let queues = List.map (check_wait folder fabric proof) waits in
  let requested = List.map snd queues and holders = List.map fst queues in
  match holders with
  | first :: others when requested = others @ [ first ] -> ()
  | _ -> refused "the waits do not form a cycle"

let sent_with folder fabric (wait : Proof_file.wait) =
  let tag (vid, priority) = Printf.sprintf "VLAN %d, priority %d" (vid land 0xfff) priority in
  (match wait.tags with
   | [] -> ""
   | tags -> Printf.sprintf " (tagged: %s)" (String.concat "; " (List.map tag tags)))
  ^
  if fabric.mac (host folder wait.host) = wait.source then ""
  else Printf.sprintf " (its source: %s)" (Folder.address_text folder wait.source)

let print folder fabric condition (waits : Proof_file.wait list) =
  Printf.printf
    "checked, not proven: %s, frames can wait for each other in a cycle. The files send\n" condition;
  if Folder.tests_more folder then
    print_string
      "these, whether rules that test other fields, such as the EtherType, match or not:\n";
  List.iter (fun (wait : Proof_file.wait) ->
      Printf.printf "  a frame from %s to %s%s by %s: in %s it waits for %s\n" wait.host
        (Folder.address_text folder wait.destination) (sent_with folder fabric wait) (String.concat " " wait.via)
        (name_of wait.holder) (name_of wait.requested))
    waits
