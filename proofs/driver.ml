(* Reads a directory of rules and a proof file, and asks the extracted checker. Trusted: what it
   reads is what the verdict is about. Everything that it does not know, it refuses. *)
open Checker

exception Unreadable of string
let fail fmt = Printf.ksprintf (fun s -> raise (Unreadable s)) fmt

let read_file path =
  try let ic = open_in_bin path in
    let text = really_input_string ic (in_channel_length ic) in close_in ic; text
  with Sys_error e | Failure e -> fail "%s" e

(* JSON; of escapes only those of the quote, the backslash and the slash *)
type json = Null | Bool of bool | Num of string | Str of string | List of json list
          | Obj of (string * json) list

let json_of text =
  let n = String.length text and at = ref 0 in
  let peek () = if !at < n then text.[!at] else fail "JSON ends early" in
  let rec skip () = if !at < n && String.contains " \t\r\n" text.[!at] then (incr at; skip ()) in
  let expect c = skip (); if peek () <> c then fail "JSON: %c expected at %d" c !at; incr at in
  let str () =
    expect '"'; let b = Buffer.create 16 in
    let rec go () = match peek () with
      | '"' -> incr at
      | '\\' -> incr at; (match peek () with '"' | '\\' | '/' as c -> Buffer.add_char b c
                                           | c -> fail "JSON: escape %c" c); incr at; go ()
      | c -> Buffer.add_char b c; incr at; go () in
    go (); Buffer.contents b in
  let rec value () = skip (); match peek () with
    | '"' -> Str (str ())
    | '[' -> incr at; List (items ']' value)
    | '{' -> incr at; Obj (items '}' (fun () -> let k = (skip (); str ()) in expect ':'; (k, value ())))
    | _ -> let from = !at in
      while !at < n && not (String.contains ",]} \t\r\n" text.[!at]) do incr at done;
      (match String.sub text from (!at - from) with
       | "null" -> Null | "true" -> Bool true | "false" -> Bool false | s -> Num s)
  and items : 'a. char -> (unit -> 'a) -> 'a list = fun close one ->
    skip (); if peek () = close then (incr at; []) else
      let rec more acc = let acc = one () :: acc in skip ();
        match peek () with
        | ',' -> incr at; more acc
        | c when c = close -> incr at; List.rev acc
        | c -> fail "JSON: unexpected %c at %d" c !at in
      more [] in
  let v = value () in skip (); if !at <> n then fail "JSON: more text at %d" !at; v

let field name = function
  | Obj l -> (match List.filter (fun (k, _) -> k = name) l with
      | [ (_, v) ] -> v | [] -> fail "no %s" name | _ -> fail "%s twice" name)
  | _ -> fail "no %s" name
let list name o = match field name o with List l -> l | _ -> fail "%s: not a list" name
let text name o = match field name o with Str s -> s | _ -> fail "%s: no text" name

(* Numbers: decimal or 0x; at most 62 bits *)
let number s =
  let ok = s <> "" && (let digits = if String.length s > 2 && String.sub s 0 2 = "0x" then 2 else 0 in
    let hex = digits = 2 in
    let good = ref (String.length s > digits) in
    String.iteri (fun i c -> if i >= digits then match c with
      | '0'..'9' -> () | 'a'..'f' | 'A'..'F' when hex -> () | _ -> good := false) s; !good) in
  match if ok then int_of_string_opt s else None with
  | Some v when v >= 0 && v <= max_int -> v
  | _ -> fail "not a number: %s" s
let int name o = match field name o with Num s -> number s | _ -> fail "%s: no number" name

let below limit s = let v = number s in if v < limit then v else fail "%s: out of range" s

let mac_of s =
  match String.split_on_char ':' s with
  | [ _; _; _; _; _; _ ] as parts ->
    List.fold_left (fun acc p -> if String.length p <> 2 then fail "address %s" s
                     else acc * 256 + number ("0x" ^ p)) 0 parts
  | _ -> fail "address %s" s

let any = (0, 0)
let ones bits = (1 lsl bits) - 1

(* VALUE or VALUE/MASK *)
let pattern bits value s =
  match String.split_on_char '/' s with
  | [ v ] -> let v = value v in if v > ones bits then fail "%s: out of range" s; (v, ones bits)
  | [ v; m ] -> let v = value v and m = value m in
    if v > ones bits || m > ones bits then fail "%s: out of range" s; (v, m)
  | _ -> fail "pattern %s" s

let max_port = 0xffffff00

let cut sep s = match String.index_opt s sep with
  | Some i -> Some (String.sub s 0 i, String.sub s (i + 1) (String.length s - i - 1)) | None -> None

type item = Act of action | Write of (int * int) | Goto of int

let item_of s = match cut ':' s with
  | None -> (match s with "pop_vlan" -> Act Pop | _ -> fail "action %s" s)
  | Some ("push_vlan", "0x8100") -> Act Push
  | Some ("output", p) ->
    let p = below max_port p in if p = 0 then fail "port 0"; Act (Output p)
  | Some ("group", g) -> Act (Group (below max_port g))
  | Some ("goto_table", t) -> Goto (below 255 t)
  | Some ("write_metadata", m) -> Write (pattern 62 number m)
  | Some ("set_field", f) ->
    (match String.split_on_char '>' f with
     | [ v; "vlan_vid" ] when String.length v > 1 && v.[String.length v - 1] = '-' ->
       let v = below 0x2000 (String.sub v 0 (String.length v - 1)) in
       if v < 0x1000 then fail "action %s" s; Act (SetVid v)
     | [ v; "vlan_pcp" ] when String.length v > 1 && v.[String.length v - 1] = '-' ->
       Act (SetPcp (below 8 (String.sub v 0 (String.length v - 1))))
     | _ -> fail "action %s" s)
  | Some _ -> fail "action %s" s

let actions_of s =
  if s = "drop" then ([], any, None) else
    let rec go acts write goto = function
      | [] -> (List.rev acts, write, goto)
      | Act a :: more when write = any && goto = None -> go (a :: acts) write goto more
      | Write w :: more when write = any && goto = None -> go acts w goto more
      | Goto t :: more when goto = None -> go acts write (Some t) more
      | _ -> fail "order of actions: %s" s in
    go [] any None (List.map item_of (String.split_on_char ',' s))

(* A line of NAME.flows: table, priority, rule *)
let rule_of line =
  let before, acts = match cut ' ' line with
    | Some (b, a) when String.length a > 8 && String.sub a 0 8 = "actions=" ->
      (b, String.sub a 8 (String.length a - 8))
    | _ -> fail "rule %s" line in
  let table = ref None and prio = ref None in
  let r_acts, r_write, r_goto = actions_of acts in
  let r = ref { r_port = any; r_dst = any; r_src = any; r_vid = any; r_pcp = any; r_meta = any;
                r_acts; r_write; r_goto } in
  let seen = Hashtbl.create 8 in
  List.iter (fun kv ->
      let k, v = match cut '=' kv with Some kv -> kv | None -> fail "field %s" kv in
      if Hashtbl.mem seen k then fail "%s twice" k; Hashtbl.add seen k ();
      match k with
      | "cookie" -> ()
      | "table" -> table := Some (below 255 v)
      | "priority" -> prio := Some (below 65536 v)
      | "in_port" -> r := { !r with r_port = (below max_port v, ones 32) }
      | "eth_dst" -> r := { !r with r_dst = pattern 48 mac_of v }
      | "eth_src" -> r := { !r with r_src = pattern 48 mac_of v }
      | "vlan_vid" -> r := { !r with r_vid = pattern 13 number v }
      | "vlan_pcp" -> r := { !r with r_pcp = (below 8 v, 7) }
      | "metadata" -> r := { !r with r_meta = pattern 62 number v }
      | _ -> fail "field %s" k)
    (String.split_on_char ',' before);
  if snd !r.r_pcp <> 0 && (fst !r.r_vid land snd !r.r_vid) land 0x1000 = 0 then
    fail "vlan_pcp without a tag: %s" line;
  match !table, !prio with
  | Some t, Some p -> (t, p, !r)
  | _ -> fail "rule without table or priority: %s" line

(* group_id=N,type=all,bucket=actions=..,bucket=actions=.. *)
let group_of_line line =
  let sep = ",bucket=actions=" in
  let n = String.length sep in
  let rec split from i acc =
    if i + n > String.length line then List.rev (String.sub line from (String.length line - from) :: acc)
    else if String.sub line i n = sep then split (i + n) (i + n) (String.sub line from (i - from) :: acc)
    else split from (i + 1) acc in
  match split 0 0 [] with
  | head :: all ->
    let id = match String.split_on_char ',' head with
      | [ g; "type=all" ] -> (match cut '=' g with
          | Some ("group_id", g) -> below max_port g | _ -> fail "group %s" line)
      | _ -> fail "group %s" line in
    let bucket s = match actions_of s with
      | acts, (0, 0), None -> acts | _ -> fail "group %s" line in
    (id, List.map bucket all)
  | [] -> fail "group %s" line

let lines text = List.filter (fun l -> l <> "") (String.split_on_char '\n' text)

let switch_of_files flows groups =
  let rules = List.map rule_of (lines flows) in
  let count = List.fold_left (fun n (t, _, _) -> max n (t + 1)) 0 rules in
  let table t =
    let mine = List.filter_map (fun (t', p, r) -> if t = t' then Some (p, r) else None) rules in
    let prios = List.sort_uniq (fun a b -> compare b a) (List.map fst mine) in
    List.map (fun p -> List.filter_map (fun (p', r) -> if p = p' then Some r else None) mine) prios in
  let groups = List.map group_of_line (lines groups) in
  let ids = List.map fst groups in
  if List.length (List.sort_uniq compare ids) <> List.length ids then fail "a group twice";
  { tables = List.init count table; groups }

type read = { fab : fabric; channels : (string * int, int) Hashtbl.t; most : int }

let read_dir dir =
  let path name = Filename.concat dir name in
  if Sys.file_exists (path "tags.json") then fail "hosts that tag are not supported";
  let top = json_of (read_file (path "fabric.json")) in
  let names = Array.of_list (List.map (text "name") (list "switches" top)) in
  let index = Hashtbl.create 1000 in
  Array.iteri (fun i n -> if Hashtbl.mem index n then fail "switch %s twice" n;
                Hashtbl.add index n i) names;
  let switch n = match Hashtbl.find_opt index n with Some i -> i | None -> fail "switch %s" n in
  let ports = Hashtbl.create 1000 and channels = Hashtbl.create 1000 in
  let key s p = if p < 0 || p >= max_port then fail "port %d" p; (s lsl 32) lor p in
  let plug s p target = let k = key s p in
    if Hashtbl.mem ports k then fail "%s: port %d twice" names.(s) p; Hashtbl.add ports k target in
  let enters = ref [] and count = ref 0 in
  List.iter (fun l ->
      let a = switch (text "a" l) and b = switch (text "b" l) in
      let pa = int "a_port" l and pb = int "b_port" l in
      plug a pa (ToChannel !count); plug b pb (ToChannel (!count + 1));
      Hashtbl.add channels (names.(a), pa) !count; Hashtbl.add channels (names.(b), pb) (!count + 1);
      enters := (a, pa) :: (b, pb) :: !enters; count := !count + 2)
    (list "links" top);
  let first_host = !count in
  let macs = List.mapi (fun h o ->
      let s = switch (text "switch" o) and p = int "port" o in
      plug s p (ToHost h); enters := (s, p) :: !enters; incr count; mac_of (text "mac" o))
      (list "hosts" top) in
  let enters = Array.of_list (List.rev !enters) and macs = Array.of_list macs in
  let sorted = List.sort_uniq compare (Array.to_list macs) in
  if List.length sorted <> Array.length macs then fail "two hosts have one address";
  let switches = Array.map (fun n ->
      switch_of_files (read_file (path (n ^ ".flows")))
        (if Sys.file_exists (path (n ^ ".groups")) then read_file (path (n ^ ".groups")) else ""))
      names in
  let nowhere = Nowhere in
  let fab queue =
    { switch_of = (fun s -> switches.(s));
      leaving = (fun s p -> match Hashtbl.find_opt ports (key s p) with Some t -> t | None -> nowhere);
      entering = (fun c -> enters.(c));
      from_host = (fun h -> first_host + h);
      hosts = List.init (Array.length macs) (fun h -> h);
      mac = (fun h -> macs.(h)); broadcast = ones 48; queue } in
  let most = Array.fold_left (fun m s -> max m (List.length s.tables)) 0 switches in
  (fab, channels, most)

(* The proof file: lines 'flow-control pfc', 'bound N', 'rank SWITCH:PORT/PRIORITY N',
   'class V/M', with the cubes of its exceptions behind it.
   A queue that is not listed has rank 1, a host's 0. *)
let () =
  let time = Sys.time in
  try
    let dir, file, flow = match Sys.argv with
      | [| _; d; f; c |] -> (d, f, c) | _ -> fail "use: knotless-verify DIRECTORY PROOF pause|pfc" in
    let pfc = match flow with "pfc" -> true | "pause" -> false | _ -> fail "flow control %s" flow in
    let t0 = time () in
    let fab, channels, most = read_dir dir in
    let queue c p = if pfc then c * 8 + p else c * 8 in
    let first_host = Hashtbl.length channels in
    let ranks = Array.make ((first_host + List.length (fab queue).hosts) * 8 + 8) 1 in
    Array.fill ranks (first_host * 8) (Array.length ranks - first_host * 8) 0;
    let bound = ref 1 and classes = ref [] in
    List.iter (fun l -> match String.split_on_char ' ' l with
        | [ "knotless-proof"; "1" ] -> ()
        | [ "bound"; n ] -> bound := number n
        | [ "rank"; q; n ] ->
          (match cut ':' q with
           | Some (s, pq) -> (match cut '/' pq with
               | Some (p, v) ->
                 let c = match Hashtbl.find_opt channels (s, number p) with
                   | Some c -> c | None -> fail "no channel %s" q in
                 ranks.(c * 8 + below 8 v) <- number n
               | None -> fail "%s" l)
           | None -> fail "%s" l)
        | "class" :: p :: but ->
          classes := (pattern 48 mac_of p, List.map (pattern 48 mac_of) but) :: !classes
        | _ -> fail "proof file: %s" l)
      (lines (read_file file));
    let fab = fab queue in
    let ranking = { rank = (fun q -> if q < Array.length ranks then ranks.(q) else 0); bound = !bound } in
    let classes = List.rev !classes in
    let t1 = time () in
    let fuel = min !bound 1_000_000 + 2 in
    if check_all fab ranking most fuel classes then
      (Printf.printf "accepted: %d classes, %d hosts; read %.2f s, checked %.2f s\n" (List.length classes)
         (List.length fab.hosts) (t1 -. t0) (time () -. t1); exit 0);
    let bad = List.find_opt (fun c -> not (check fab ranking most fuel [ c ])) classes in
    (match bad with
     | Some ((v, m), _) -> Printf.printf "rejected: destination %012x/%012x (%.2f s)\n" v m (time () -. t1)
     | None -> Printf.printf "rejected: the classes do not cover all addresses\n");
    exit 1
  with Unreadable e -> Printf.printf "unreadable: %s\n" e; exit 2
     | Stack_overflow -> print_endline "unreadable: stack"; exit 2
