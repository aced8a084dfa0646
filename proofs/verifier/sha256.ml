(* SHA-256 of a string (FIPS 180-4): the standard library of OCaml has MD5 only. Trusted. *)

let constants = [|
  0x428a2f98; 0x71374491; 0xb5c0fbcf; 0xe9b5dba5; 0x3956c25b; 0x59f111f1; 0x923f82a4; 0xab1c5ed5;
  0xd807aa98; 0x12835b01; 0x243185be; 0x550c7dc3; 0x72be5d74; 0x80deb1fe; 0x9bdc06a7; 0xc19bf174;
  0xe49b69c1; 0xefbe4786; 0x0fc19dc6; 0x240ca1cc; 0x2de92c6f; 0x4a7484aa; 0x5cb0a9dc; 0x76f988da;
  0x983e5152; 0xa831c66d; 0xb00327c8; 0xbf597fc7; 0xc6e00bf3; 0xd5a79147; 0x06ca6351; 0x14292967;
  0x27b70a85; 0x2e1b2138; 0x4d2c6dfc; 0x53380d13; 0x650a7354; 0x766a0abb; 0x81c2c92e; 0x92722c85;
  0xa2bfe8a1; 0xa81a664b; 0xc24b8b70; 0xc76c51a3; 0xd192e819; 0xd6990624; 0xf40e3585; 0x106aa070;
  0x19a4c116; 0x1e376c08; 0x2748774c; 0x34b0bcb5; 0x391c0cb3; 0x4ed8aa4a; 0x5b9cca4f; 0x682e6ff3;
  0x748f82ee; 0x78a5636f; 0x84c87814; 0x8cc70208; 0x90befffa; 0xa4506ceb; 0xbef9a3f7; 0xc67178f2; |]

let initial = [|
  0x6a09e667; 0xbb67ae85; 0x3c6ef372; 0xa54ff53a; 0x510e527f; 0x9b05688c; 0x1f83d9ab; 0x5be0cd19; |]

let word_mask = 0xffffffff
let rotate x bits = ((x lsr bits) lor (x lsl (32 - bits))) land word_mask

(* The message, a bit 1, zeros up to 8 bytes below a multiple of 64, and its length in bits. *)
let padded message =
  let length = String.length message in
  let zeros = (119 - length mod 64) mod 64 in
  let buffer = Buffer.create (length + 72) in
  Buffer.add_string buffer message;
  Buffer.add_char buffer '\x80';
  Buffer.add_string buffer (String.make zeros '\x00');
  Buffer.add_int64_be buffer (Int64.of_int (8 * length));
  Buffer.contents buffer

let schedule words text block =
  for i = 0 to 15 do
    words.(i) <- Int32.to_int (String.get_int32_be text (64 * block + 4 * i)) land word_mask
  done;
  for i = 16 to 63 do
    let a = words.(i - 15) and b = words.(i - 2) in
    let s0 = rotate a 7 lxor rotate a 18 lxor (a lsr 3) in
    let s1 = rotate b 17 lxor rotate b 19 lxor (b lsr 10) in
    words.(i) <- (words.(i - 16) + s0 + words.(i - 7) + s1) land word_mask
  done

let compress state words =
  let v = Array.copy state in
  for i = 0 to 63 do
    let a = v.(0) and b = v.(1) and c = v.(2) and e = v.(4) in
    let s1 = rotate e 6 lxor rotate e 11 lxor rotate e 25 in
    let choice = (e land v.(5)) lxor (lnot e land v.(6)) in
    let t1 = v.(7) + s1 + choice + constants.(i) + words.(i) in
    let s0 = rotate a 2 lxor rotate a 13 lxor rotate a 22 in
    let majority = (a land b) lxor (a land c) lxor (b land c) in
    Array.blit v 0 v 1 7;
    v.(4) <- (v.(4) + t1) land word_mask;
    v.(0) <- (t1 + s0 + majority) land word_mask
  done;
  Array.iteri (fun i x -> state.(i) <- (x + v.(i)) land word_mask) state

(* In hexadecimal. *)
let of_string message =
  let text = padded message and state = Array.copy initial and words = Array.make 64 0 in
  for block = 0 to String.length text / 64 - 1 do
    schedule words text block;
    compress state words
  done;
  String.concat "" (List.map (Printf.sprintf "%08x") (Array.to_list state))
