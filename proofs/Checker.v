(** The checker: follows classes of frames through the rules, and compares ranks.

    A class of frames is a class of destinations, a cube of what hosts may choose (the source, and
    the VLAN of the first tag), and tags as far as they are known. Where rules tell the destinations
    of a class apart, the checker divides the class and follows each part; a source it follows
    together with those that rules do not tell from it. *)
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

(** * Tags *)

(** Tags as far as they are known. What is None in a tag is as in the first one that the host has
    sent; [More] are any tags that the host has sent, or none. *)
Inductive view := Bottom | More | Tag (v p : option N) (below : view).

(** What a host chooses of a frame is one number: the source, and the VLAN above its 48 bits. *)
Definition address_bits := N.ones 48.
Definition vlan_of (x : N) : N := N.shiftr x 48.

(** The VLANs and the priorities of frames, of which a cube has what hosts choose. *)
Definition exactly (x : N) : pattern := (x, address_bits).
Definition vids (ts : view) (x : pattern) : pattern :=
  match ts with
  | Bottom => exactly 0
  | More => (0, 0)
  | Tag (Some v) _ _ => exactly v
  | Tag None _ _ => (vlan_of (fst x), vlan_of (snd x))
  end.
Definition priority (ts : view) : option N :=
  match ts with Bottom => Some 0 | More => None | Tag _ p _ => p end.
Definition priorities : list N := [0; 1; 2; 3; 4; 5; 6; 7].
Definition pcps (ts : view) : pattern :=
  match priority ts with Some p => exactly p | None => (0, 0) end.

(** The same with less known: nothing but the first tag. *)
Definition forget (ts : view) : view :=
  match ts with Tag v p _ => Tag v p More | _ => ts end.

Fixpoint has_chosen_vlan (ts : view) : bool :=
  match ts with
  | Tag None _ _ => true
  | Tag _ _ below => has_chosen_vlan below
  | _ => false
  end.

(** * Rules *)

Definition both (a b : tri) : tri :=
  match a, b with Yes, Yes => Yes | No, _ | _, No => No | _, _ => Unknown end.

(** Does a pattern of addresses fit the source that is chosen? *)
Definition fits_source (p x : pattern) : tri :=
  if snd p <=? address_bits then fits_cube p x else Unknown.

(** [v] and [p]: the VLANs and the priorities of the frames. The input port is not compared: the
    rules are those of one port, see [rules_of_port]. *)
Definition matches_class (r : rule) (meta : N) (v p : pattern) (d : class) (x : pattern) : tri :=
  if fits (r_meta r) meta then
    match fits_cube (r_vid r) v with
    | No => No
    | vlan =>
        match fits_cube (r_pcp r) p with
        | No => No
        | pcp =>
            match fits_class (r_dst r) d with
            | No => No
            | to => both (both vlan pcp) (both to (fits_source (r_src r) x))
            end
        end
    end
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
  && patterns_eqb (r_writes a) (r_writes b) && Bool.eqb (r_more a) (r_more b)
  && match r_goto a, r_goto b with
     | None, None => true
     | Some x, Some y => Nat.eqb x y
     | _, _ => false
     end.

(** The rules of one priority that match; of those that do the same, one. *)
Fixpoint in_level (l : list rule) (meta : N) (v p : pattern) (d : class) (x : pattern)
  : answer (list rule) :=
  match l with
  | [] => Known []
  | r :: more =>
      match matches_class r meta v p d x with
      | No => in_level more meta v p d x
      | Yes =>
          match in_level more meta v p d x with
          | Known hits => Known (if existsb (does_as r) hits then hits else r :: hits)
          | other => other
          end
      | Unknown => undecided r d
      end
  end.

(** It stands for no rule. *)
Definition no_rule := Rule (0, 0) (0, 0) (0, 0) (0, 0) (0, 0) (0, 0) false [] None (0, 0) [].

(** The rules that may count. *)
Fixpoint in_table (t : table) (meta : N) (v p : pattern) (d : class) (x : pattern)
  : answer (list rule) :=
  match t with
  | [] => Known [no_rule]
  | level :: lower =>
      match in_level level meta v p d x with
      | Known hits =>
          if forallb r_more hits then
            match in_table lower meta v p d x with
            | Known others => Known (hits ++ others)
            | other => other
            end
          else Known hits
      | other => other
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

(** Actions, as in the specification. None: it is not defined what the switch does, or not known. *)
Definition copy_seen := (N * view)%type.
Definition effects_seen := option (view * list copy_seen).

Fixpoint do_bucket (port : N) (acts : list action) (ts : view) (out : list copy_seen)
  : effects_seen :=
  match acts with
  | [] => Some (ts, out)
  | Output to :: more => do_bucket port more ts (if to =? port then out else out ++ [(to, ts)])
  | Back :: more => do_bucket port more ts (out ++ [(port, ts)])
  | one :: more =>
      match one, ts with
      | Push, Bottom => do_bucket port more (Tag (Some 4096) (Some 0) Bottom) out
      | Push, Tag v p _ => do_bucket port more (Tag v p ts) out
      | Pop, Tag _ _ below => do_bucket port more below out
      | SetVid v, Tag _ p below => do_bucket port more (Tag (Some v) p below) out
      | SetPcp p, Tag v _ below => do_bucket port more (Tag v (Some p) below) out
      | _, _ => None
      end
  end.

Fixpoint do_buckets (port : N) (all : list (list action)) (ts : view) (out : list copy_seen)
  : option (list copy_seen) :=
  match all with
  | [] => Some out
  | one :: more =>
      match do_bucket port one ts out with
      | None => None
      | Some (_, out) => do_buckets port more ts out
      end
  end.

Fixpoint perform (sw : switch) (port : N) (acts : list action) (ts : view) (out : list copy_seen)
  : list effects_seen :=
  match acts with
  | [] => [Some (ts, out)]
  | Group g :: more =>
      let from_bucket one :=
        match do_bucket port one ts out with
        | None => [None]
        | Some (_, out) => perform sw port more ts out
        end in
      match group_of g (groups sw) with
      | None => [None]
      | Some (All content) =>
          match do_buckets port content ts out with
          | None => [None]
          | Some out => perform sw port more ts out
          end
      | Some (Select []) => perform sw port more ts out
      | Some (Select content) => flat_map from_bucket content
      | Some (Failover content) =>
          match find (fun one => negb (is_down sw (fst one))) content with
          | None => perform sw port more ts out
          | Some (_, one) => from_bucket one
          end
      end
  | one :: more =>
      match do_bucket port [one] ts out with
      | None => [None]
      | Some (ts, out) => perform sw port more ts out
      end
  end.

(** The copies that may leave: one list for each choice. [l]: the tables from number [at_table] on,
    of which the frame enters [target]. *)
Fixpoint handle (sw : switch) (port : N) (d : class) (x : pattern) (l : list table)
  (at_table target : nat) (meta : N) (ts : view) : answer (list (list copy_seen)) :=
  match l with
  | [] => Known [[]]
  | t :: l =>
      if Nat.eqb at_table target then
        match in_table t meta (vids ts x) (pcps ts) d x with
        | Refuse => Refuse
        | Divide p => Divide p
        | Known hits =>
            let from_table next ts' out w :=
              match handle sw port d x l (S at_table) next (written w meta) ts' with
              | Known outs => Known (map (app out) outs)
              | other => other
              end in
            let effect_of r (e : effects_seen) :=
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
            collect (fun r => collect (effect_of r) (perform sw port (r_acts r) ts [])) hits
        end
      else handle sw port d x l (S at_table) target meta ts
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

Definition value_eqb (a b : option N) : bool :=
  match a, b with Some a, Some b => a =? b | None, None => true | _, _ => false end.
Fixpoint view_eqb (a b : view) : bool :=
  match a, b with
  | Bottom, Bottom | More, More => true
  | Tag v p below, Tag v' p' below' => value_eqb v v' && value_eqb p p' && view_eqb below below'
  | _, _ => false
  end.

(** An outcome, with bits of what hosts choose: of all frames with the same ones. *)
Definition known := (N * outcome)%type.
Definition entry := (view * pattern * outcome)%type.

Fixpoint assoc (ts : view) (x : N) (l : list entry) : option known :=
  match l with
  | [] => None
  | (seen, chosen, o) :: more =>
      if view_eqb ts seen && fits chosen x then Some (snd chosen, o) else assoc ts x more
  end.

(** What is known of the frames of a class: outcomes by channel, tags and choices; and the same of
    the two parts, by the bit that divides the class. With each part are the hosts whose address is
    in it. *)
Inductive memo :=
  Memo (outcomes : Map.tree (list entry)) (parts : list (N * (list N * memo * (list N * memo)))).
Definition blank := Memo Map.Leaf [].   (* nothing is known *)
Definition part := (list N * memo)%type.
Definition outcomes (m : memo) := let (outcomes, _) := m in outcomes.
Definition parts (m : memo) : list (N * (part * part)) := let (_, parts) := m in parts.

Definition recall (m : memo) (c : N) (ts : view) (x : N) : option known :=
  match Map.find (outcomes m) c with None => None | Some l => assoc ts x l end.
Definition remember (m : memo) (c : N) (ts : view) (x : N) (k : known) : memo :=
  let others := match Map.find (outcomes m) c with None => [] | Some l => l end in
  Memo (Map.add (outcomes m) c ((ts, (x, fst k), snd k) :: others)) (parts m).

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

(** What the rules for a channel test: destinations, sources with the destinations of the same rule,
    and VLANs. It says what to try: that it suffices is seen when the rules are applied. *)
Record tested := Tested {
  destinations : list pattern; sources : list (pattern * pattern); vlans : list pattern }.

(** The bits of a number by which a pattern tells it from others, and some others: all that the
    pattern tests if it fits, else one by which it does not. *)
Definition with_bits_of (p : pattern) (x bits : N) : N :=
  match fits_cube p (x, bits) with
  | Unknown =>
      let different := N.land (N.lxor x (fst p)) (snd p) in
      if different =? 0 then N.lor bits (snd p) else N.setbit bits (N.log2 different)
  | _ => bits
  end.

Definition with_bits_of_vlan (x bits : N) (p : pattern) : N :=
  with_bits_of (N.shiftl (fst p) 48, N.shiftl (snd p) 48) x bits.

(** The bits of a choice by which rules tell it from others. *)
Definition telling_bits (t : tested) (d : class) (x : N) (ts : view) : N :=
  let with_source bits (test : pattern * pattern) :=
    let (destination, p) := test in
    match fits_class destination d with No => bits | _ => with_bits_of p x bits end in
  let bits := fold_left with_source (sources t) 0 in
  if has_chosen_vlan ts then fold_left (with_bits_of_vlan x) (vlans t) bits else bits.

(** What a switch may hold, and the tables of it for frames from one port. *)
Definition held := (switch * list table)%type.

Section Follow.
  (** [delivery]: frames have to reach whom they are for. Without it, all outcomes are the same:
      nobody. [loose]: of tags on channels only the first one is known. [rules c]: for frames on
    channel [c]; [tests c]: what these test. *)
  Variables (delivery loose : bool) (fab : fabric) (rk : ranking) (rules : N -> list held)
    (tests : N -> tested).

  Definition owners_in (d : class) (owners : list N) : list N :=
    filter (fun h => in_class d (mac fab h)) owners.

  Definition parts_of (m : memo) (d : class) (owners : list N) (bit : N) : part * part :=
    match parts_by bit (parts m) with
    | Some both => both
    | None => ((owners_in (half false d bit) owners, blank),
               (owners_in (half true d bit) owners, blank))
    end.

  Definition out_seen := (target * view)%type.
  Definition resolved_seen (at_switch : N) (sw : switch) (c : copy_seen) : out_seen :=
    (if is_down sw (fst c) then Nowhere else leaving fab at_switch (fst c), snd c).

  Definition arrive (c : N) (d : class) (x : pattern) (ts : view) : answer (list (list out_seen)) :=
    let (at_switch, port) := entering fab c in
    let with_version (v : held) :=
      match handle (fst v) port d x (snd v) 0 0 0 ts with
      | Known choices => Known (map (map (resolved_seen at_switch (fst v))) choices)
      | Divide p => Divide p
      | Refuse => Refuse
      end in
    collect with_version (rules c).

  (** The rank of the queue of a frame on a channel; if its priority is not known, the highest one
      that it may have. *)
  Definition rank_on (c : N) (ts : view) : N :=
    let of_priority p := rank rk (queue fab c p) in
    match ts, priority ts with
    | _, Some p => of_priority p
    | More, None => bound rk
    | _, None => fold_right N.max 0 (map of_priority priorities)
    end.

  Definition on_channel (ts : view) : view := if loose then forget ts else ts.

  (** [go] follows a frame on a channel; [from]: the rank of the queue that holds it. *)
  Fixpoint follow_all (go : memo -> N -> view -> option (memo * known)) (from : N) (m : memo)
    (outs : list out_seen) : option (memo * known) :=
    match outs with
    | [] => Some (m, (0, Exactly []))
    | (Nowhere, _) :: more => follow_all go from m more
    | (ToHost h, ts) :: more =>
        match delivery, ts, follow_all go from m more with
        | false, _, rest => rest
        | true, Bottom, Some (m, (bits, Exactly l)) =>
            Some (m, (bits, Exactly (together (just h) l)))
        | _, _, _ => None
        end
    | (ToChannel c, ts) :: more =>
        match priority ts with
        | None => None
        | Some p =>
            let next := rank rk (queue fab c p) in
            if (from <? next) && (next <=? bound rk) && negb (delivery && may_fail fab c) then
              match go m c (on_channel ts) with
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
        end
    end.

  (** All choices have to lead to the same receivers. *)
  Fixpoint follow_each (go : memo -> N -> view -> option (memo * known)) (from : N) (d : class)
    (owners : list N) (m : memo) (choices : list (list out_seen)) : option (memo * known) :=
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

  (** A frame with the choice [x]. [owners]: the hosts whose address is in the class. *)
  Fixpoint follow (fuel : nat) (d : class) (owners : list N) (x : N) (m : memo) (c : N)
    (ts : view) : option (memo * known) :=
    match recall m c ts x with
    | Some k => Some (m, k)
    | None =>
        match fuel with
        | O => None
        | S fuel =>
            let bits := telling_bits (tests c) d x ts in
            match arrive c d (x, bits) ts with
            | Refuse => None
            | Known choices =>
                match follow_each (follow fuel d owners x) (rank_on c ts) d owners m choices with
                | None => None
                | Some (m, (bits', o)) =>
                    let k := (N.lor bits bits', o) in Some (remember m c ts x k, k)
                end
            | Divide p =>
                let bit := dividing (destinations (tests c)) d p in
                let (zero, one) := parts_of m d owners bit in
                let go value part := follow fuel (half value d bit) (fst part) x (snd part) c ts in
                match go false zero, go true one with
                | Some (m0, (bits, o)), Some (m1, (bits', o')) =>
                    match join (mac fab) (half false d bit) (half true d bit) (fst zero) (fst one)
                            o o' with
                    | None => None
                    | Some o =>
                        let k := (N.lor bits bits', o) in
                        let m := remember_parts m bit ((fst zero, m0), (fst one, m1)) in
                        Some (remember m c ts x k, k)
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

  (** What a host sends to a class, untagged and with its own address. The memo belongs to the
      class. *)
  Fixpoint from_one (fuel' : nat) (everybody : ranges) (h : N) (d : class) (owners : list N)
    (m : memo) : option memo :=
    let c := from_host fab h in
    match arrive fab rules c d (exactly (mac fab h)) Bottom with
    | Refuse => None
    | Known choices =>
        match follow_each delivery false fab rk
                (follow delivery false fab rk rules tests fuel d owners (mac fab h))
                (rank_on fab rk c Bottom) d owners m choices with
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

(** * Whatever hosts send *)

Section Any.
  (** [forge]: with any source; [tag]: with any tags. *)
  Variables (forge tag : bool) (fab : fabric) (rk : ranking) (rules : N -> list held)
    (tests : N -> tested) (fuel : nat).

  Definition drops (r : rule) : bool :=
    match r_acts r, r_goto r with [], None => true | _, _ => false end.

  (** The first rule of a table that may let frames to any address pass. *)
  Fixpoint passing (t : table) (v p x : pattern) : option rule :=
    match t with
    | [] => None
    | level :: lower =>
        let fit r := matches_class r 0 v p ((0, 0), []) x in
        let may_pass r := match fit r with No => false | _ => negb (drops r) end in
        match find may_pass level with
        | Some r => Some r
        | None =>
            if existsb (fun r => match fit r with Yes => negb (r_more r) | _ => false end) level
            then None
            else passing lower v p x
        end
    end.

  Fixpoint first_passing (l : list held) (v p x : pattern) : option rule :=
    match l with
    | [] => None
    | (_, tables) :: more =>
        match passing (hd [] tables) v p x with
        | Some r => Some r
        | None => first_passing more v p x
        end
    end.

  Definition side (one : bool) (x : pattern) (bits : N) : pattern :=
    fst (half one (x, []) (N.log2 bits)).

  (** A cube of choices divided where rules of the first table divide it, without those parts whose
      frames it drops. *)
  Fixpoint admitted (fuel' : nat) (c : N) (ts : view) (x : pattern) : list pattern :=
    match first_passing (rules c) (vids ts x) (pcps ts) x with
    | None => []
    | Some r =>
        let bits := with_bits_of (r_src r) (fst x) (snd x) in
        let bits :=
          if has_chosen_vlan ts then with_bits_of_vlan (fst x) bits (r_vid r) else bits in
        let more := N.ldiff bits (snd x) in
        match fuel' with
        | O => [x]
        | S fuel' =>
            if more =? 0 then [x]
            else admitted fuel' c ts (side false x more) ++ admitted fuel' c ts (side true x more)
        end
    end.

  (** Frames of a host: by which channel, tags, and a cube of choices. *)
  Definition start := (N * view * pattern)%type.

  (** Untagged ones; and all with a tag, whose VLAN has the bit 0x1000. *)
  Definition first_views : list view := Bottom :: if tag then [Tag None None More] else [].
  Definition first_cube (h : N) (ts : view) : pattern :=
    let x := if forge then (0, 0) else exactly (mac fab h) in
    if has_chosen_vlan ts then (N.setbit (fst x) 60, N.setbit (snd x) 60) else x.

  Definition starts : list start :=
    let of_host h :=
      let c := from_host fab h in
      let of_view ts := map (fun x => (c, ts, x)) (admitted fuel c ts (first_cube h ts)) in
      flat_map of_view first_views in
    flat_map of_host (hosts fab).

  (** All of a start to a class. *)
  Fixpoint from_cube (fuel' : nat) (d : class) (owners : list N) (c : N) (ts : view) (x : pattern)
    (m : memo) : option memo :=
    match follow false true fab rk rules tests fuel d owners (fst x) m c ts with
    | None => None
    | Some (m, (bits, _)) =>
        let more := N.ldiff bits (snd x) in
        if more =? 0 then Some m
        else
          match fuel' with
          | O => None
          | S fuel' =>
              match from_cube fuel' d owners c ts (side false x more) m with
              | None => None
              | Some m => from_cube fuel' d owners c ts (side true x more) m
              end
          end
    end.

  Fixpoint from_views (d : class) (owners : list N) (c : N) (x : pattern) (l : list view) (m : memo)
    : option memo :=
    match l with
    | [] => Some m
    | ts :: more =>
        match from_cube fuel d owners c ts x m with
        | None => None
        | Some m => from_views d owners c x more m
        end
    end.

  (** If priorities matter, each for itself. *)
  Definition with_each_priority (ts : view) : list view :=
    match ts with
    | Tag v None below => map (fun p => Tag v (Some p) below) priorities
    | _ => [ts]
    end.

  Definition from_start (d : class) (owners : list N) (one : start) (m : memo) : option memo :=
    let '(c, ts, x) := one in
    match from_cube fuel d owners c ts x m with
    | Some m => Some m
    | None => from_views d owners c x (with_each_priority ts) m
    end.

  Fixpoint from_starts (d : class) (owners : list N) (l : list start) (m : memo) : bool :=
    match l with
    | [] => true
    | one :: more =>
        match from_start d owners one m with
        | None => false
        | Some m => from_starts d owners more m
        end
    end.

  Definition check_any_class (l : list start) (d : class) : bool :=
    from_starts d (owners_in fab d (hosts fab)) l blank.
End Any.

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

Definition tests_some (p : pattern) : bool := negb (snd p =? 0).

(** Each pattern once. *)
Fixpoint different (l : list pattern) : list pattern :=
  match l with
  | [] => []
  | p :: more =>
      let others := different more in if existsb (pattern_eqb p) others then others else p :: others
  end.

Definition tested_by (l : list held) : tested :=
  let rules := concat (concat (flat_map snd l)) in
  Tested (filter tests_some (map r_dst rules))
         (filter (fun test => tests_some (snd test)) (map (fun r => (r_dst r, r_src r)) rules))
         (different (filter tests_some (map r_vid rules))).

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
Definition with_rules {A} (fab : fabric) (channels : list N)
  (check : (N -> list held) -> (N -> tested) -> A) : A :=
  let rules := prepared (tables_of fab) (prepare (tables_of fab) channels) in
  let tests_of c := tested_by (rules c) in
  check rules (prepared tests_of (prepare tests_of channels)).

Definition have_48_bits (fab : fabric) : bool :=
  forallb (fun h => mac fab h <=? address_bits) (hosts fab).

Definition check (delivery : bool) (fab : fabric) (rk : ranking) (fuel : nat) (channels : list N)
  (classes : list class) : bool :=
  with_rules fab channels (fun rules tests =>
    let everybody := NSort.sort (hosts fab) in
    let all := fold_right (fun h => together (just h)) [] everybody in
    have_48_bits fab && ascending everybody
    && forallb (check_class delivery fab rk rules tests fuel all) classes).

(** Whether classes have every address of 48 bits. *)
Definition are_all (classes : list class) : bool :=
  forallb (fun c => snd (fst c) <=? address_bits) classes && exceptions_follow classes
  && cover 48 (map fst classes).

Definition check_all (delivery : bool) (fab : fabric) (rk : ranking) (fuel : nat) (channels : list N)
  (classes : list class) : bool :=
  are_all classes && check delivery fab rk fuel channels classes.

(** The same without delivery for all that hosts may send. *)
Definition check_any (forge tag : bool) (fab : fabric) (rk : ranking) (fuel : nat)
  (channels : list N) (classes : list class) : bool :=
  with_rules fab channels (fun rules tests =>
    let l := starts forge tag fab rules fuel in
    have_48_bits fab
    && forallb (fun h => match rules (from_host fab h) with [] => false | _ => true end) (hosts fab)
    && forallb (check_any_class fab rk rules tests fuel l) classes).

Definition check_all_any (forge tag : bool) (fab : fabric) (rk : ranking) (fuel : nat)
  (channels : list N) (classes : list class) : bool :=
  are_all classes && check_any forge tag fab rk fuel channels classes.
