(* JSON (RFC 8259) as far as fabrics need it. Trusted. *)

type t =
  | Null
  | Bool of bool
  | Number of string
  | Text of string
  | List of t list
  | Object of (string * t) list

exception Malformed of string

let max_depth = 16
let fail format = Printf.ksprintf (fun message -> raise (Malformed message)) format

let add_utf8 buffer code =
  match Uchar.is_valid code with
  | true -> Buffer.add_utf_8_uchar buffer (Uchar.of_int code)
  | false -> fail "an escape of half a character"

let of_string text =
  let length = String.length text and at = ref 0 in
  let peek () = if !at < length then text.[!at] else fail "it ends early" in
  let rec skip_blanks () =
    if !at < length && String.contains " \t\r\n" text.[!at] then (incr at; skip_blanks ()) in
  let expect c = if peek () <> c then fail "%C expected at byte %d" c !at; incr at in
  let hex_digits () =
    if !at + 4 > length then fail "it ends early";
    let digits = String.sub text !at 4 in
    at := !at + 4;
    match int_of_string_opt ("0x" ^ digits) with
    | Some code when not (String.contains digits '_') -> code
    | _ -> fail "escape \\u%s" digits in
  let escape buffer =
    match peek () with
    | ('"' | '\\' | '/') as c -> incr at; Buffer.add_char buffer c
    | 'u' -> incr at; add_utf8 buffer (hex_digits ())
    | c -> fail "escape \\%c" c in
  let quoted () =
    expect '"';
    let buffer = Buffer.create 16 in
    let rec more () =
      match peek () with
      | '"' -> incr at
      | '\\' -> incr at; escape buffer; more ()
      | c when c < ' ' -> fail "a control character at byte %d" !at
      | c -> incr at; Buffer.add_char buffer c; more () in
    more ();
    Buffer.contents buffer in
  let literal () =
    let first = !at in
    while !at < length && not (String.contains ",]} \t\r\n" text.[!at]) do incr at done;
    match String.sub text first (!at - first) with
    | "null" -> Null
    | "true" -> Bool true
    | "false" -> Bool false
    | number -> Number number in
  let items close item =
    skip_blanks ();
    if peek () = close then (incr at; [])
    else
      let rec more before =
        let before = item () :: before in
        skip_blanks ();
        match peek () with
        | ',' -> incr at; more before
        | c when c = close -> incr at; List.rev before
        | c -> fail "unexpected %C at byte %d" c !at in
      more [] in
  let rec value depth () =
    if depth > max_depth then fail "nested too deeply";
    skip_blanks ();
    match peek () with
    | '"' -> Text (quoted ())
    | '[' -> incr at; List (items ']' (value (depth + 1)))
    | '{' -> incr at; Object (items '}' (member (depth + 1)))
    | _ -> literal ()
  and member depth () =
    skip_blanks ();
    let key = quoted () in
    skip_blanks ();
    expect ':';
    (key, value depth ()) in
  let result = value 0 () in
  skip_blanks ();
  if !at <> length then fail "more text at byte %d" !at;
  result

let field name = function
  | Object members ->
    (match List.filter (fun (key, _) -> key = name) members with
     | [ (_, value) ] -> value
     | [] -> fail "%s is missing" name
     | _ -> fail "%s occurs twice" name)
  | _ -> fail "%s is missing" name

let list name value = match field name value with List l -> l | _ -> fail "%s is no list" name
let text name value = match field name value with Text t -> t | _ -> fail "%s is no text" name

let number name value =
  match field name value with Number n -> n | _ -> fail "%s is no number" name

(* Refuses members that are not among [names]: they might mean something. *)
let only names = function
  | Object members ->
    List.iter (fun (key, _) -> if not (List.mem key names) then fail "unknown key %S" key) members
  | _ -> fail "no object"
