(** OCaml from the checker. Numbers become native integers of 63 bits: addresses have 48. *)
From Coq Require Import NArith ExtrOcamlBasic ExtrOcamlNatInt ExtrOcamlZInt Extraction.
From Knotless Require Import Spec Checker.

Extract Inlined Constant fst => "Stdlib.fst".
Extract Inlined Constant snd => "Stdlib.snd".
Extract Inlined Constant negb => "not".
Extract Inlined Constant N.land => "(land)".
Extract Inlined Constant N.lor => "(lor)".
Extract Inlined Constant N.lxor => "(lxor)".
Extract Constant N.ldiff => "fun (a:int) (b:int) -> a land (lnot b)".
Extract Constant N.eqb => "fun (a:int) (b:int) -> a = b".
Extract Constant N.ltb => "fun (a:int) (b:int) -> a < b".
Extract Constant N.leb => "fun (a:int) (b:int) -> a <= b".
Extract Constant N.compare =>
  "fun (a:int) (b:int) -> if a = b then Eq else if a < b then Lt else Gt".
Extract Constant N.odd => "fun (a:int) -> a land 1 = 1".
Extract Constant N.div2 => "fun (a:int) -> a lsr 1".
Extract Constant N.testbit => "fun (a:int) (b:int) -> (a lsr b) land 1 = 1".
Extract Constant N.shiftl => "fun (a:int) (b:int) -> a lsl b".
Extract Constant N.shiftr => "fun (a:int) (b:int) -> a lsr b".
Extract Constant N.max => "fun (a:int) (b:int) -> if a < b then b else a".
Extract Constant N.log2 =>
  "fun (a:int) -> let rec go n k = if n < 2 then k else go (n lsr 1) (k + 1) in go a 0".
Extract Constant N.clearbit => "fun (a:int) (b:int) -> a land (lnot (1 lsl b))".
Extract Constant N.setbit => "fun (a:int) (b:int) -> a lor (1 lsl b)".
Extract Constant N.ones => "fun (a:int) -> (1 lsl a) - 1".
Extract Constant N.succ => "fun (a:int) -> a + 1".
Extract Constant N.pred => "fun (a:int) -> if a = 0 then 0 else a - 1".
Extract Constant N.of_nat => "fun (a:int) -> a".
Extract Constant Nat.eqb => "fun (a:int) (b:int) -> a = b".
Extract Constant Nat.ltb => "fun (a:int) (b:int) -> a < b".

Extraction "extracted.ml" check_all check_all_any arrive dividing.
