(** The checker: follows classes of frames through the rules, and compares ranks.

    A class of frames is a class of destinations, a cube of sources, and tags. Where rules tell the
    destinations of a class apart, the checker divides the class and follows each part; a source it
    follows together with those that rules do not tell from it. *)
From Coq Require Import NArith List Bool Mergesort Orders.
From Knotless Require Import Spec.
Import ListNotations.
Open Scope N_scope.
Open Scope bool_scope.

(** Maps from numbers: a tree by the bits of the key, the lowest first, as deep as needed to tell
    keys apart. *)
Module Map.
  Inductive tree (A : Type) :=
  | Leaf
  | One (key : N) (value : A)
  | Node (even : tree A) (value : option A) (odd : tree A).
  Arguments Leaf {A}.
  Arguments One {A}.
  Arguments Node {A}.

  Fixpoint find {A} (t : tree A) (key : N) : option A :=
    match t with
    | Leaf => None
    | One only value => if key =? only then Some value else None
    | Node even value odd =>
        if key =? 0 then value
        else if N.odd key then find odd (N.div2 key) else find even (N.div2 key)
    end.

  (** Two keys that differ in the lowest [bits] bits. *)
  Fixpoint two {A} (bits : nat) (a : N) (x : A) (b : N) (y : A) : tree A :=
    match bits with
    | O => Leaf
    | S bits =>
        let one key value :=
          if N.odd key then Node Leaf None (One (N.div2 key) value)
          else Node (One (N.div2 key) value) None Leaf in
        let with_zero t z :=
          match t with Node even _ odd => Node even (Some z) odd | other => other end in
        if a =? 0 then with_zero (one b y) x
        else if b =? 0 then with_zero (one a x) y
        else match N.odd a, N.odd b with
             | true, true => Node Leaf None (two bits (N.div2 a) x (N.div2 b) y)
             | false, false => Node (two bits (N.div2 a) x (N.div2 b) y) None Leaf
             | true, false => Node (One (N.div2 b) y) None (One (N.div2 a) x)
             | false, true => Node (One (N.div2 a) x) None (One (N.div2 b) y)
             end
    end.

  Fixpoint add {A} (t : tree A) (key : N) (x : A) : tree A :=
    match t with
    | Leaf => One key x
    | One only value => if key =? only then One key x else two 62 only value key x
    | Node even value odd =>
        if key =? 0 then Node even (Some x) odd
        else if N.odd key then Node even value (add odd (N.div2 key) x)
        else Node (add even (N.div2 key) x) value odd
    end.
End Map.

Inductive tri := Yes | No | Unknown.

(** Does a pattern fit all, none or some of the numbers of a cube? *)
Definition fits_cube (p cube : pattern) : tri :=
  if N.land (N.land (N.lxor (fst cube) (fst p)) (snd cube)) (snd p) =? 0
  then (if N.ldiff (snd p) (snd cube) =? 0 then Yes else Unknown)
  else No.

(** Destinations: those of a cube but for those of some others. *)
Definition class := (pattern * list pattern)%type.
Definition in_class (c : class) (x : N) : bool :=
  fits (fst c) x && forallb (fun e => negb (fits e x)) (snd c).

(** A pattern that fits numbers of an exception only fits none of the class. *)
Definition fits_class (p : pattern) (c : class) : tri :=
  if existsb (fun e => match fits_cube e p with Yes => true | _ => false end) (snd c) then No
  else fits_cube p (fst c).

(** * Rules *)

(** [v] and [p]: the VLAN and the priority of the tag. The input port is not compared: the rules are
    those of one port, see [rules_of_port]. *)
Definition matches_class (r : rule) (meta v p : N) (d : class) (s : pattern) : tri :=
  if fits (r_meta r) meta then
    if fits (r_vid r) v then
      if fits (r_pcp r) p then
        match fits_class (r_dst r) d with
        | No => No
        | Yes => fits_cube (r_src r) s
        | Unknown => match fits_cube (r_src r) s with No => No | _ => Unknown end
        end
      else No
    else No
  else No.

(** What rules do with a class; or a pattern by which they tell its destinations apart; or nothing
    that the checker can tell. *)
Inductive answer (A : Type) := Known (a : A) | Divide (p : pattern) | Refuse.
Arguments Known {A}.
Arguments Divide {A}.
Arguments Refuse {A}.

(** For a rule of which it is unknown whether it matches. *)
Definition undecided {A} (r : rule) (d : class) : answer A :=
  match fits_class (r_dst r) d with Unknown => Divide (r_dst r) | _ => Refuse end.

Definition pattern_eqb (a b : pattern) : bool := (fst a =? fst b) && (snd a =? snd b).

Definition action_eqb (a b : action) : bool :=
  match a, b with
  | Push, Push | Pop, Pop | Back, Back => true
  | SetVid x, SetVid y | SetPcp x, SetPcp y | Output x, Output y | Group x, Group y => x =? y
  | _, _ => false
  end.

Fixpoint actions_eqb (a b : list action) : bool :=
  match a, b with
  | [], [] => true
  | x :: a, y :: b => action_eqb x y && actions_eqb a b
  | _, _ => false
  end.

Fixpoint patterns_eqb (a b : list pattern) : bool :=
  match a, b with
  | [], [] => true
  | x :: a, y :: b => pattern_eqb x y && patterns_eqb a b
  | _, _ => false
  end.

Definition does_as (a b : rule) : bool :=
  actions_eqb (r_acts a) (r_acts b) && pattern_eqb (r_write a) (r_write b)
  && patterns_eqb (r_writes a) (r_writes b)
  && match r_goto a, r_goto b with
     | None, None => true
     | Some x, Some y => Nat.eqb x y
     | _, _ => false
     end.

(** The rules of one priority that match; of those that do the same, one. *)
Fixpoint in_level (l : list rule) (meta v p : N) (d : class) (s : pattern) : answer (list rule) :=
  match l with
  | [] => Known []
  | r :: more =>
      match matches_class r meta v p d s with
      | No => in_level more meta v p d s
      | Yes =>
          match in_level more meta v p d s with
          | Known hits => Known (if existsb (does_as r) hits then hits else r :: hits)
          | other => other
          end
      | Unknown => undecided r d
      end
  end.

(** The rules that may count; none if none matches. *)
Fixpoint in_table (t : table) (meta v p : N) (d : class) (s : pattern) : answer (list rule) :=
  match t with
  | [] => Known []
  | level :: lower =>
      match in_level level meta v p d s with
      | Known [] => in_table lower meta v p d s
      | decided => decided
      end
  end.

(** All answers together, if all are known. *)
Fixpoint collect {A B} (f : A -> answer (list B)) (l : list A) : answer (list B) :=
  match l with
  | [] => Known []
  | x :: l =>
      match f x with
      | Known a => match collect f l with Known b => Known (a ++ b) | other => other end
      | other => other
      end
  end.

(** The tables as frames meet them that enter by a port. *)
Definition rules_of_port (port : N) (t : table) : table :=
  map (filter (fun r => fits (r_port r) port)) t.

(** The copies that may leave: one list for each choice. [l]: the tables from number [at_table] on,
    of which the frame enters [target]. *)
Fixpoint handle (sw : switch) (port : N) (d : class) (s : pattern) (l : list table)
  (at_table target : nat) (meta : N) (ts : stack) : answer (list (list copy)) :=
  match l with
  | [] => Known [[]]
  | t :: l =>
      if Nat.eqb at_table target then
        match in_table t meta (vid ts) (pcp ts) d s with
        | Refuse => Refuse
        | Divide p => Divide p
        | Known [] => Known [[]]
        | Known hits =>
            let from_table next ts' out w :=
              match handle sw port d s l (S at_table) next (written w meta) ts' with
              | Known outs => Known (map (app out) outs)
              | other => other
              end in
            let effect_of r (e : effects) :=
              match e with
              | None => Refuse
              | Some (ts', out) =>
                  match r_goto r with
                  | None => Known [out]
                  | Some next =>
                      if Nat.ltb at_table next
                      then collect (from_table next ts' out) (r_write r :: r_writes r)
                      else Refuse
                  end
              end in
            collect (fun r => collect (effect_of r) (apply sw port (r_acts r) ts [])) hits
        end
      else handle sw port d s l (S at_table) target meta ts
  end.

(** * Classes *)

(** Destinations of a class with a bit of one value. *)
Definition half (one : bool) (d : class) (bit : N) : class :=
  let (value, mask) := fst d in
  ((if one then N.setbit value bit else N.clearbit value bit, N.setbit mask bit), snd d).

(** How many bits of a number are 1, if these are at most [most]. *)
Fixpoint count (most : nat) (bits : N) : N :=
  match most with
  | O => 0
  | S most => if bits =? 0 then 0 else N.succ (count most (N.land bits (N.pred bits)))
  end.

(** The bit by which to divide a class that [p] divides: a bit that the class has not decided, of
    that one of [p] and some other [patterns] that divide it which tests the fewest such bits. Wide
    patterns come first: most parts are then told from narrow ones, and are not divided by these. *)
Definition dividing (patterns : list pattern) (d : class) (p : pattern) : N :=
  let open_bits q := N.ldiff (snd q) (snd (fst d)) in
  let fewer (best : N * N) (q : pattern) :=
    match fits_class q d with
    | Unknown => let n := count 48 (open_bits q) in if n <? snd best then (open_bits q, n) else best
    | _ => best
    end in
  N.log2 (fst (fold_left fewer patterns (open_bits p, count 48 (open_bits p)))).

(** Hosts, as ranges: each from a number to below another one. They ascend with gaps between them,
    so that the same hosts are the same ranges. *)
Definition ranges := list (N * N).
Definition just (h : N) : ranges := [(h, N.succ h)].

Definition before (r : N * N) (l : ranges) : ranges :=
  match l with
  | (first, last) :: more =>
      if (snd r =? first) && (fst r <=? first) && (first <=? last) then (fst r, last) :: more
      else r :: l
  | [] => [r]
  end.

(** All of both. *)
Fixpoint together (a : ranges) : ranges -> ranges :=
  match a with
  | [] => fun b => b
  | r :: more =>
      fix into (b : ranges) : ranges :=
        match b with
        | [] => a
        | r' :: more' =>
            if fst r <? fst r' then before r (together more b) else before r' (into more')
        end
  end.

(** Who receives a frame of a class: some hosts; or those to whose address it is sent. *)
Inductive outcome := Exactly (l : ranges) | ToOwner.

Definition outcome_and (a b : outcome) : option outcome :=
  match a, b with
  | Exactly l, Exactly l' => Some (Exactly (together l l'))
  | Exactly [], ToOwner | ToOwner, Exactly [] => Some ToOwner
  | _, _ => None
  end.

(** Whether it is the owner of the address who receives a frame. [owners]: the hosts whose address is
    in the class. Frames that are for nobody may reach anybody. *)
Definition to_owner (owners : list N) (o : outcome) : bool :=
  match o, owners with
  | ToOwner, _ | _, [] => true
  | Exactly [r], [w] => pattern_eqb r (w, N.succ w)
  | _, _ => false
  end.

(** The same, but frames that are for nobody reach nobody. [address]: of a host. *)
Definition only_owner (address : N -> N) (d : class) (owners : list N) (o : outcome) : bool :=
  match o, owners with
  | ToOwner, _ | Exactly [], [] => true
  | Exactly [r], [w] =>
      pattern_eqb r (w, N.succ w) && (snd (fst d) =? N.ones 48) && (fst (fst d) =? address w)
      && (address w <=? N.ones 48)
  | _, _ => false
  end.

(** The outcome of frames that are of one class, or of another, with these owners. *)
Definition join (address : N -> N) (d d' : class) (owners owners' : list N) (o o' : outcome)
  : option outcome :=
  let owner :=
    if only_owner address d owners o && only_owner address d' owners' o'
    then Some ToOwner else None in
  match o, o' with
  | Exactly l, Exactly l' => if patterns_eqb l l' then Some o else owner
  | _, _ => owner
  end.

(** * Following *)

(** What a proof file claims: a rank for each queue, and an upper bound of all. *)
Record ranking := Ranking { rank : N -> N; bound : N }.

Definition tag_eqb (a b : tag) : bool := (fst a =? fst b) && (snd a =? snd b).
Fixpoint stack_eqb (a b : stack) : bool :=
  match a, b with
  | [], [] => true
  | x :: a, y :: b => tag_eqb x y && stack_eqb a b
  | _, _ => false
  end.

(** An outcome, with bits of sources: of all frames with the same ones. *)
Definition known := (N * outcome)%type.
Definition entry := (stack * pattern * outcome)%type.

Fixpoint assoc (ts : stack) (s : N) (l : list entry) : option known :=
  match l with
  | [] => None
  | (seen, sources, o) :: more =>
      if stack_eqb ts seen && fits sources s then Some (snd sources, o) else assoc ts s more
  end.

(** What is known of the frames of a class: outcomes by channel, tags and sources; and the same of
    the two parts, by the bit that divides the class. With each part are the hosts whose address is
    in it. *)
Inductive memo :=
  Memo (outcomes : Map.tree (list entry)) (parts : list (N * (list N * memo * (list N * memo)))).
Definition blank := Memo Map.Leaf [].   (* nothing is known *)
Definition part := (list N * memo)%type.
Definition outcomes (m : memo) := let (outcomes, _) := m in outcomes.
Definition parts (m : memo) : list (N * (part * part)) := let (_, parts) := m in parts.

Definition recall (m : memo) (c : N) (ts : stack) (s : N) : option known :=
  match Map.find (outcomes m) c with None => None | Some l => assoc ts s l end.
Definition remember (m : memo) (c : N) (ts : stack) (s : N) (k : known) : memo :=
  let others := match Map.find (outcomes m) c with None => [] | Some l => l end in
  Memo (Map.add (outcomes m) c ((ts, (s, fst k), snd k) :: others)) (parts m).

Fixpoint parts_by (bit : N) (l : list (N * (part * part))) : option (part * part) :=
  match l with
  | [] => None
  | (by_bit, both) :: more => if bit =? by_bit then Some both else parts_by bit more
  end.
Fixpoint with_parts (bit : N) (both : part * part) (l : list (N * (part * part)))
  : list (N * (part * part)) :=
  match l with
  | [] => [(bit, both)]
  | (by_bit, old) :: more =>
      if bit =? by_bit then (bit, both) :: more else (by_bit, old) :: with_parts bit both more
  end.
Definition remember_parts (m : memo) (bit : N) (both : part * part) : memo :=
  Memo (outcomes m) (with_parts bit both (parts m)).

(** What the rules for a channel test: destinations, and sources with the destinations of the same
    rule. It says what to try: that it suffices is seen when the rules are applied. *)
Record tested := Tested { destinations : list pattern; sources : list (pattern * pattern) }.

(** The bits of a source by which rules tell it from others: all that a pattern tests which fits it,
    and one by which another one does not. *)
Definition telling_bits (t : tested) (d : class) (s : N) : N :=
  let with_bits bits (test : pattern * pattern) :=
    let (destination, p) := test in
    match fits_class destination d, fits_cube p (s, bits) with
    | No, _ | _, No | _, Yes => bits
    | _, Unknown =>
        let different := N.land (N.lxor s (fst p)) (snd p) in
        if different =? 0 then N.lor bits (snd p) else N.setbit bits (N.log2 different)
    end in
  fold_left with_bits (sources t) 0.

(** What a switch may hold, and the tables of it for frames from one port. *)
Definition held := (switch * list table)%type.

Section Follow.
  (** [delivery]: frames have to reach whom they are for. Without it, all outcomes are the same:
      nobody. [rules c]: for frames on channel [c]; [tests c]: what these test. *)
  Variables (delivery : bool) (fab : fabric) (rk : ranking) (rules : N -> list held)
    (tests : N -> tested).

  Definition owners_in (d : class) (owners : list N) : list N :=
    filter (fun h => in_class d (mac fab h)) owners.

  Definition parts_of (m : memo) (d : class) (owners : list N) (bit : N) : part * part :=
    match parts_by bit (parts m) with
    | Some both => both
    | None => ((owners_in (half false d bit) owners, blank),
               (owners_in (half true d bit) owners, blank))
    end.

  Definition arrive (c : N) (d : class) (s : pattern) (ts : stack) : answer (list (list out)) :=
    let (at_switch, port) := entering fab c in
    let with_version (v : held) :=
      match handle (fst v) port d s (snd v) 0 0 0 ts with
      | Known choices => Known (map (map (resolved fab at_switch (fst v))) choices)
      | Divide p => Divide p
      | Refuse => Refuse
      end in
    collect with_version (rules c).

  (** [go] follows a frame on a channel. *)
  Fixpoint follow_all (go : memo -> N -> stack -> option (memo * known)) (from : N) (m : memo)
    (outs : list out) : option (memo * known) :=
    match outs with
    | [] => Some (m, (0, Exactly []))
    | (Nowhere, _) :: more => follow_all go from m more
    | (ToHost h, ts) :: more =>
        match delivery, ts, follow_all go from m more with
        | false, _, rest => rest
        | true, [], Some (m, (bits, Exactly l)) => Some (m, (bits, Exactly (together (just h) l)))
        | _, _, _ => None
        end
    | (ToChannel c, ts) :: more =>
        let next := rank rk (queue_of fab c ts) in
        if (rank rk from <? next) && (next <=? bound rk) && negb (delivery && may_fail fab c) then
          match go m c ts with
          | None => None
          | Some (m, (bits, o)) =>
              match follow_all go from m more with
              | None => None
              | Some (m, (bits', o')) =>
                  match outcome_and o o' with
                  | None => None
                  | Some o => Some (m, (N.lor bits bits', o))
                  end
              end
          end
        else None
    end.

  (** All choices have to lead to the same receivers. *)
  Fixpoint follow_each (go : memo -> N -> stack -> option (memo * known)) (from : N) (d : class)
    (owners : list N) (m : memo) (choices : list (list out)) : option (memo * known) :=
    match choices with
    | [] => None
    | [outs] => follow_all go from m outs
    | outs :: more =>
        match follow_all go from m outs with
        | None => None
        | Some (m, (bits, o)) =>
            match follow_each go from d owners m more with
            | None => None
            | Some (m, (bits', o')) =>
                match join (mac fab) d d owners owners o o' with
                | None => None
                | Some o => Some (m, (N.lor bits bits', o))
                end
            end
        end
    end.

  (** A frame with the source [s]. [owners]: the hosts whose address is in the class. *)
  Fixpoint follow (fuel : nat) (d : class) (owners : list N) (s : N) (m : memo) (c : N)
    (ts : stack) : option (memo * known) :=
    match recall m c ts s with
    | Some k => Some (m, k)
    | None =>
        match fuel with
        | O => None
        | S fuel =>
            let bits := telling_bits (tests c) d s in
            match arrive c d (s, bits) ts with
            | Refuse => None
            | Known choices =>
                match follow_each (follow fuel d owners s) (queue_of fab c ts) d owners m choices
                with
                | None => None
                | Some (m, (bits', o)) =>
                    let k := (N.lor bits bits', o) in Some (remember m c ts s k, k)
                end
            | Divide p =>
                let bit := dividing (destinations (tests c)) d p in
                let (zero, one) := parts_of m d owners bit in
                let go value part := follow fuel (half value d bit) (fst part) s (snd part) c ts in
                match go false zero, go true one with
                | Some (m0, (bits, o)), Some (m1, (bits', o')) =>
                    match join (mac fab) (half false d bit) (half true d bit) (fst zero) (fst one)
                            o o' with
                    | None => None
                    | Some o =>
                        let k := (N.lor bits bits', o) in
                        let m := remember_parts m bit ((fst zero, m0), (fst one, m1)) in
                        Some (remember m c ts s k, k)
                    end
                | _, _ => None
                end
            end
        end
    end.
End Follow.

(** * What hosts send *)

Module NOrder <: TotalLeBool.
  Definition t := N.
  Definition leb := N.leb.
  Theorem leb_total : forall a b, leb a b = true \/ leb b a = true.
  Proof. intros a b. unfold leb. rewrite !N.leb_le. apply N.le_ge_cases. Qed.
End NOrder.
Module NSort := Sort NOrder.

Section Check.
  Variables (delivery : bool) (fab : fabric) (rk : ranking) (rules : N -> list held)
    (tests : N -> tested) (fuel : nat).

  (** Whether those who receive what a host sends to a class are those who are to: the owner of the
      address, unless it is the sender; for a class with the broadcast address, and none of a host,
      all others. [everybody]: all hosts. *)
  Definition receives (everybody : ranges) (d : class) (owners : list N) (h : N) (o : outcome)
    : bool :=
    if in_class d (broadcast fab)
    then match owners, o with
         | [], Exactly l => patterns_eqb (together (just h) l) everybody
         | _, _ => false
         end
    else match o with
         | ToOwner => true
         | Exactly _ => to_owner (filter (fun r => negb (r =? h)) owners) o
         end.

  (** What a host sends to a class. The memo belongs to the class. *)
  Fixpoint from_one (fuel' : nat) (everybody : ranges) (h : N) (d : class) (owners : list N)
    (m : memo) : option memo :=
    let c := from_host fab h in
    match arrive fab rules c d (mac fab h, N.ones 48) [] with
    | Refuse => None
    | Known choices =>
        match follow_each delivery fab rk
                (follow delivery fab rk rules tests fuel d owners (mac fab h))
                (queue_of fab c []) d owners m choices with
        | None => None
        | Some (m, (_, o)) =>
            if negb delivery || receives everybody d owners h o then Some m else None
        end
    | Divide p =>
        match fuel' with
        | O => None
        | S fuel' =>
            let bit := dividing (destinations (tests c)) d p in
            let (zero, one) := parts_of fab m d owners bit in
            let go value part :=
              from_one fuel' everybody h (half value d bit) (fst part) (snd part) in
            match go false zero, go true one with
            | Some m0, Some m1 => Some (remember_parts m bit ((fst zero, m0), (fst one, m1)))
            | _, _ => None
            end
        end
    end.

  Fixpoint from_hosts (everybody : ranges) (d : class) (owners : list N) (m : memo)
    (senders : list N) : bool :=
    match senders with
    | [] => true
    | h :: more =>
        match from_one fuel everybody h d owners m with
        | None => false
        | Some m => from_hosts everybody d owners m more
        end
    end.

  Definition check_class (everybody : ranges) (d : class) : bool :=
    from_hosts everybody d (owners_in fab d (hosts fab)) blank (hosts fab).
End Check.

(** The bit that most cubes test, of those undecided. Whoever has made the cubes by dividing has
    divided at a bit that all test, so that none is on both sides of it. *)
Definition dividing_bit (bits : nat) (decided : N) (cubes : list pattern) : N :=
  let undecided := filter (fun i => negb (N.testbit decided i)) (map N.of_nat (seq 0 bits)) in
  let tests i := N.of_nat (length (filter (fun p => N.testbit (snd p) i) cubes)) in
  let better best i := let n := tests i in if fst best <=? n then (n, i) else best in
  snd (fold_left better undecided (0, 0)).

(** Whether cubes contain all numbers that agree with each of them in the decided bits. *)
Fixpoint divided (fuel bits : nat) (decided : N) (cubes : list pattern) : bool :=
  match cubes with
  | [] => false
  | _ :: _ =>
      existsb (fun p => N.ldiff (snd p) decided =? 0) cubes ||
      match fuel with
      | O => false
      | S fuel =>
          let bit := dividing_bit bits decided cubes in
          let side (one : bool) (p : pattern) :=
            negb (N.testbit (snd p) bit) || Bool.eqb (N.testbit (fst p) bit) one in
          divided fuel bits (N.setbit decided bit) (filter (side false) cubes)
          && divided fuel bits (N.setbit decided bit) (filter (side true) cubes)
      end
  end.

(** Whether cubes contain every number of [bits] bits. *)
Definition cover (bits : nat) (cubes : list pattern) : bool := divided bits bits 0 cubes.

(** Exceptions have to be the cubes of later classes. *)
Fixpoint exceptions_follow (classes : list class) : bool :=
  match classes with
  | [] => true
  | c :: more =>
      forallb (fun e => existsb (pattern_eqb e) (map fst more)) (snd c) && exceptions_follow more
  end.

(** What switches may hold, for frames on a channel. *)
Definition tables_of (fab : fabric) (c : N) : list held :=
  let (at_switch, port) := entering fab c in
  map (fun sw => (sw, map (rules_of_port port) (tables sw))) (versions fab at_switch).

Definition tested_by (l : list held) : tested :=
  let rules := concat (concat (flat_map snd l)) in
  Tested (filter (fun p => negb (snd p =? 0)) (map r_dst rules))
         (filter (fun test => negb (snd (snd test) =? 0)) (map (fun r => (r_dst r, r_src r)) rules)).

(** A function of channels, prepared for those of a list. *)
Definition prepare {A} (f : N -> A) (channels : list N) : Map.tree A :=
  fold_left (fun m c => Map.add m c (f c)) channels Map.Leaf.

Definition prepared {A} (f : N -> A) (ready : Map.tree A) (c : N) : A :=
  match Map.find ready c with Some x => x | None => f c end.

(** Each number is above the one before it. *)
Fixpoint ascending (l : list N) : bool :=
  match l with
  | x :: (y :: _) as more => (x <? y) && ascending more
  | _ => true
  end.

(** [channels] may be any: it is quicker if these are all, numbered from 0. *)
Definition check (delivery : bool) (fab : fabric) (rk : ranking) (fuel : nat) (channels : list N)
  (classes : list class) : bool :=
  let rules := prepared (tables_of fab) (prepare (tables_of fab) channels) in
  let tests_of c := tested_by (rules c) in
  let tests := prepared tests_of (prepare tests_of channels) in
  let everybody := NSort.sort (hosts fab) in
  let all := fold_right (fun h => together (just h)) [] everybody in
  ascending everybody
  && forallb (check_class delivery fab rk rules tests fuel all) classes.

(** The same for every address of 48 bits. *)
Definition check_all (delivery : bool) (fab : fabric) (rk : ranking) (fuel : nat) (channels : list N)
  (classes : list class) : bool :=
  forallb (fun c => snd (fst c) <=? N.ones 48) classes && exceptions_follow classes
  && cover 48 (map fst classes) && check delivery fab rk fuel channels classes.
