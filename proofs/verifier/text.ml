(* Numbers, addresses and patterns as they are written in files. Trusted. *)

exception Unreadable of string
exception Refused of string

let unreadable format = Printf.ksprintf (fun message -> raise (Unreadable message)) format
let refused format = Printf.ksprintf (fun message -> raise (Refused message)) format
let max_file_bytes = 256 * 1024 * 1024

let read_file path =
  try
    let channel = open_in_bin path in
    Fun.protect ~finally:(fun () -> close_in_noerr channel) (fun () ->
        let length = in_channel_length channel in
        if length > max_file_bytes then unreadable "%s: larger than 256 MiB" path;
        really_input_string channel length)
  with
  | Sys_error message -> unreadable "%s" message
  | End_of_file -> unreadable "%s: it changes while it is read" path

(* Lines that are not empty, with their numbers, from 1. *)
let numbered_lines text =
  let add (number, lines) line =
    (number + 1, if line = "" then lines else (number, line) :: lines) in
  List.rev (snd (List.fold_left add (1, []) (String.split_on_char '\n' text)))

(* The parts before and behind the first separator. *)
let cut separator text =
  match String.index_opt text separator with
  | None -> None
  | Some i -> Some (String.sub text 0 i, String.sub text (i + 1) (String.length text - i - 1))

let has_suffix suffix text =
  let n = String.length suffix and length = String.length text in
  length >= n && String.sub text (length - n) n = suffix

let is_hexadecimal text = String.length text > 2 && String.sub text 0 2 = "0x"

let is_number text =
  let is_hex = is_hexadecimal text in
  let digits = if is_hex then String.sub text 2 (String.length text - 2) else text in
  digits <> ""
  && String.for_all (function '0' .. '9' -> true | 'a' .. 'f' | 'A' .. 'F' -> is_hex | _ -> false)
    digits

(* Decimal, or hexadecimal behind 0x; of at most 62 bits. *)
let number text =
  match if is_number text then int_of_string_opt text else None with
  | Some value when value >= 0 -> value
  | _ -> unreadable "not a number of at most 62 bits: %s" text

let below limit text =
  let value = number text in
  if value < limit then value else unreadable "out of range: %s" text

let mac text =
  let byte part =
    if String.length part <> 2 then unreadable "not an address: %s" text;
    number ("0x" ^ part) in
  match String.split_on_char ':' text with
  | [ _; _; _; _; _; _ ] as parts ->
    List.fold_left (fun address part -> (address * 256) + byte part) 0 parts
  | _ -> unreadable "not an address: %s" text

let mac_text address =
  String.concat ":"
    (List.map (fun shift -> Printf.sprintf "%02x" ((address lsr shift) land 255))
       [ 40; 32; 24; 16; 8; 0 ])

let ones bits = (1 lsl bits) - 1
let any = (0, 0)

(* VALUE or VALUE/MASK, of so many bits. *)
let pattern bits value text =
  let part text =
    let number = value text in
    if number > ones bits then unreadable "out of range: %s" text;
    number in
  match String.split_on_char '/' text with
  | [ v ] -> (part v, ones bits)
  | [ v; m ] -> (part v, part m)
  | _ -> unreadable "not a value and a mask: %s" text

(* A number in decimal, up to a limit, as an address of IPv4 has it: without zeros before it. *)
let decimal limit text =
  match if String.length text <= 3 then int_of_string_opt text else None with
  | Some value when 0 <= value && value <= limit && string_of_int value = text -> value
  | _ -> unreadable "not a number up to %d: %s" limit text

let ipv4 text =
  match String.split_on_char '.' text with
  | [ _; _; _; _ ] as parts ->
    List.fold_left (fun address part -> (address * 256) + decimal 255 part) 0 parts
  | _ -> unreadable "not an address: %s" text

let ipv4_text address =
  String.concat "."
    (List.map (fun shift -> string_of_int ((address lsr shift) land 255)) [ 24; 16; 8; 0 ])

(* ADDRESS/LENGTH: the pattern in 48 bits, of which the highest 16 are 0, and the length. *)
let prefix text =
  match cut '/' text with
  | None -> unreadable "not a prefix: %s" text
  | Some (address, length) ->
    let value = ipv4 address and length = decimal 32 length in
    let mask = ones 48 - ones (32 - length) in
    if value land mask <> value then unreadable "bits behind the prefix are set: %s" text;
    ((value, mask), length)

let prefix_text (value, mask) =
  let rec length n = if mask land ones (32 - n) = 0 then n else length (n + 1) in
  Printf.sprintf "%s/%d" (ipv4_text value) (length 0)

(* A LID of InfiniBand: 0x and four digits. *)
let lid text =
  if is_hexadecimal text && String.length text = 6 then number text
  else unreadable "not a LID: %s" text
let lid_text lid = Printf.sprintf "0x%04x" lid

(* LID or LID/MASK: the pattern in 48 bits, of which the highest 32 are 0. *)
let lids text =
  let value, mask = pattern 16 lid text in
  if value land mask <> value then unreadable "bits outside of the mask are set: %s" text;
  (value, mask lor (ones 48 - ones 16))

let lids_text (value, mask) =
  if mask = ones 48 then lid_text value else lid_text value ^ "/" ^ lid_text (mask land ones 16)

(* An address of Ethernet, IPv4 or InfiniBand, and a cube of them. *)
let address text =
  if String.contains text ':' then mac text
  else if is_hexadecimal text then lid text
  else ipv4 text

let cube text =
  if String.contains text ':' then pattern 48 mac text
  else if is_hexadecimal text then lids text
  else fst (prefix text)

(* Adds a place to what is wrong there. *)
let within place f =
  try f () with
  | Unreadable message -> unreadable "%s: %s" place message
  | Json.Malformed message -> unreadable "%s: not JSON of a fabric: %s" place message
