let rec length = function
| [] -> 0
| _ :: l' -> Stdlib.Int.succ (length l')

let rec app l m =
  match l with
  | [] -> m
  | a :: l1 -> a :: (app l1 m)

let rec eqb = fun (a:int) (b:int) -> a = b

let ltb = fun (a:int) (b:int) -> a < b

let eqb0 b1 b2 =
  if b1 then b2 else if b2 then false else true

module type TotalLeBool' =
 sig
  type t

  val leb : t -> t -> bool
 end

module Pos =
 struct
  let rec size_nat p =
    (fun f2p1 f2p f1 p ->
  if p<=1 then f1 () else if p mod 2 = 0 then f2p (p/2) else f2p1 (p/2))
      (fun p0 -> Stdlib.Int.succ (size_nat p0))
      (fun p0 -> Stdlib.Int.succ (size_nat p0))
      (fun _ -> Stdlib.Int.succ 0)
      p

 end

module N =
 struct
  let eqb = fun (a:int) (b:int) -> a = b

  let leb = fun (a:int) (b:int) -> a <= b

  let ltb = fun (a:int) (b:int) -> a < b

  let div2 = fun (a:int) -> a lsr 1

  let odd = fun (a:int) -> a land 1 = 1

  let log2 = fun (a:int) -> let rec go n k = if n < 2 then k else go (n lsr 1) (k + 1) in go a 0

  let size_nat n0 =
    (fun f0 fp n -> if n=0 then f0 () else fp n)
      (fun _ -> 0)
      (fun p -> Pos.size_nat p)
      n0

  let ldiff = fun (a:int) (b:int) -> a land (lnot b)

  let testbit = fun (a:int) (b:int) -> (a lsr b) land 1 = 1

  let of_nat = fun (a:int) -> a

  let setbit = fun (a:int) (b:int) -> a lor (1 lsl b)

  let clearbit = fun (a:int) (b:int) -> a land (lnot (1 lsl b))

  let ones = fun (a:int) -> (1 lsl a) - 1
 end

let rec map f = function
| [] -> []
| a :: t0 -> (f a) :: (map f t0)

let rec flat_map f = function
| [] -> []
| x :: t0 -> app (f x) (flat_map f t0)

let rec fold_left f l a0 =
  match l with
  | [] -> a0
  | b :: t0 -> fold_left f t0 (f a0 b)

let rec existsb f = function
| [] -> false
| a :: l0 -> (||) (f a) (existsb f l0)

let rec forallb f = function
| [] -> true
| a :: l0 -> (&&) (f a) (forallb f l0)

let rec filter f = function
| [] -> []
| x :: l0 -> if f x then x :: (filter f l0) else filter f l0

let rec find f = function
| [] -> None
| x :: tl -> if f x then Some x else find f tl

let rec seq start len =
  (fun fO fS n -> if n=0 then fO () else fS (n-1))
    (fun _ -> [])
    (fun len0 -> start :: (seq (Stdlib.Int.succ start) len0))
    len

let vid = function
| [] -> 0
| t0 :: _ -> let (v, _) = t0 in v

let pcp = function
| [] -> 0
| t0 :: _ -> let (_, p) = t0 in p

type pattern = int * int

let fits p x =
  N.eqb ((land) ((lxor) x (Stdlib.fst p)) (Stdlib.snd p)) 0

type action =
| Push
| Pop
| SetVid of int
| SetPcp of int
| Output of int
| Back
| Group of int

type rule = { r_port : pattern; r_dst : pattern; r_src : pattern;
              r_vid : pattern; r_pcp : pattern; r_meta : pattern;
              r_acts : action list; r_goto : int option; r_write : pattern;
              r_writes : pattern list }

type table = rule list list

type group =
| All of action list list
| Select of action list list
| Failover of (int * action list) list

type switch = { tables : table list; groups : (int * group) list;
                down : int list }

let is_down sw port =
  existsb (N.eqb port) sw.down

let rec bucket port acts ts out0 =
  match acts with
  | [] -> Some (ts, out0)
  | a :: more ->
    (match a with
     | Push ->
       bucket port more
         (match ts with
          | [] ->
            (((fun p->2*p) ((fun p->2*p) ((fun p->2*p) ((fun p->2*p)
              ((fun p->2*p) ((fun p->2*p) ((fun p->2*p) ((fun p->2*p)
              ((fun p->2*p) ((fun p->2*p) ((fun p->2*p) ((fun p->2*p)
              1)))))))))))), 0) :: []
          | top :: _ -> top :: ts) out0
     | Pop ->
       (match ts with
        | [] -> None
        | _ :: below -> bucket port more below out0)
     | SetVid v ->
       (match ts with
        | [] -> None
        | t0 :: below ->
          let (_, p) = t0 in bucket port more ((v, p) :: below) out0)
     | SetPcp p ->
       (match ts with
        | [] -> None
        | t0 :: below ->
          let (v, _) = t0 in bucket port more ((v, p) :: below) out0)
     | Output to0 ->
       bucket port more ts
         (if N.eqb to0 port then out0 else app out0 ((to0, ts) :: []))
     | Back -> bucket port more ts (app out0 ((port, ts) :: []))
     | Group _ -> None)

let rec buckets port all ts out0 =
  match all with
  | [] -> Some out0
  | one :: more ->
    (match bucket port one ts out0 with
     | Some p -> let (_, out1) = p in buckets port more ts out1
     | None -> None)

let rec group_of g = function
| [] -> None
| p :: more ->
  let (number, content) = p in
  if N.eqb g number then Some content else group_of g more

let rec apply sw port acts ts out0 =
  match acts with
  | [] -> (Some (ts, out0)) :: []
  | one :: more ->
    (match one with
     | Group g ->
       (match group_of g sw.groups with
        | Some g0 ->
          (match g0 with
           | All content ->
             (match buckets port content ts out0 with
              | Some out1 -> apply sw port more ts out1
              | None -> None :: [])
           | Select content ->
             (match content with
              | [] -> apply sw port more ts out0
              | _ :: _ ->
                flat_map (fun one0 ->
                  match bucket port one0 ts out0 with
                  | Some p -> let (_, out1) = p in apply sw port more ts out1
                  | None -> None :: []) content)
           | Failover content ->
             (match find (fun one0 -> not (is_down sw (Stdlib.fst one0)))
                      content with
              | Some p ->
                let (_, one0) = p in
                (match bucket port one0 ts out0 with
                 | Some p0 -> let (_, out1) = p0 in apply sw port more ts out1
                 | None -> None :: [])
              | None -> apply sw port more ts out0))
        | None -> None :: [])
     | _ ->
       (match bucket port (one :: []) ts out0 with
        | Some p -> let (ts0, out1) = p in apply sw port more ts0 out1
        | None -> None :: []))

let written w meta =
  (lor) (N.ldiff meta (Stdlib.snd w)) ((land) (Stdlib.fst w) (Stdlib.snd w))

type target =
| ToHost of int
| ToChannel of int
| Nowhere

type fabric = { versions : (int -> switch list);
                leaving : (int -> int -> target);
                entering : (int -> int * int); may_fail : (int -> bool);
                from_host : (int -> int); hosts : int list;
                mac : (int -> int); broadcast : int;
                queue : (int -> int -> int) }

let resolved fab s sw c =
  ((if is_down sw (Stdlib.fst c)
    then Nowhere
    else fab.leaving s (Stdlib.fst c)), (Stdlib.snd c))

let queue_of fab c ts =
  fab.queue c (pcp ts)

module Sort =
 functor (X:TotalLeBool') ->
 struct
  let rec merge l1 l2 =
    let rec merge_aux l3 =
      match l1 with
      | [] -> l3
      | a1 :: l1' ->
        (match l3 with
         | [] -> l1
         | a2 :: l2' ->
           if X.leb a1 a2 then a1 :: (merge l1' l3) else a2 :: (merge_aux l2'))
    in merge_aux l2

  let rec merge_list_to_stack stack0 l =
    match stack0 with
    | [] -> (Some l) :: []
    | y :: stack' ->
      (match y with
       | Some l' -> None :: (merge_list_to_stack stack' (merge l' l))
       | None -> (Some l) :: stack')

  let rec merge_stack = function
  | [] -> []
  | y :: stack' ->
    (match y with
     | Some l -> merge l (merge_stack stack')
     | None -> merge_stack stack')

  let rec iter_merge stack0 = function
  | [] -> merge_stack stack0
  | a :: l' -> iter_merge (merge_list_to_stack stack0 (a :: [])) l'

  let sort =
    iter_merge []

 end

module Map =
 struct
  type 'a tree =
  | Leaf
  | Node of 'a tree * 'a option * 'a tree

  let rec empty bits =
    (fun fO fS n -> if n=0 then fO () else fS (n-1))
      (fun _ -> Leaf)
      (fun bits0 -> let half0 = empty bits0 in Node (half0, None, half0))
      bits

  let rec find t0 key =
    match t0 with
    | Leaf -> None
    | Node (even0, value, odd0) ->
      if N.eqb key 0
      then value
      else if N.odd key
           then find odd0 (N.div2 key)
           else find even0 (N.div2 key)

  let rec add t0 key x =
    match t0 with
    | Leaf -> Leaf
    | Node (even0, value, odd0) ->
      if N.eqb key 0
      then Node (even0, (Some x), odd0)
      else if N.odd key
           then Node (even0, value, (add odd0 (N.div2 key) x))
           else Node ((add even0 (N.div2 key) x), value, odd0)
 end

type tri =
| Yes
| No
| Unknown

let fits_cube p cube =
  if N.eqb
       ((land)
         ((land) ((lxor) (Stdlib.fst cube) (Stdlib.fst p)) (Stdlib.snd cube))
         (Stdlib.snd p)) 0
  then if N.eqb (N.ldiff (Stdlib.snd p) (Stdlib.snd cube)) 0
       then Yes
       else Unknown
  else No

let in_class c x =
  (&&) (fits (Stdlib.fst c) x)
    (forallb (fun e -> not (fits e x)) (Stdlib.snd c))

let fits_class p c =
  if existsb (fun e -> match fits_cube e p with
                       | Yes -> true
                       | _ -> false) (Stdlib.snd c)
  then No
  else fits_cube p (Stdlib.fst c)

let matches_class r meta v p d s =
  if fits r.r_meta meta
  then if fits r.r_vid v
       then if fits r.r_pcp p
            then (match fits_class r.r_dst d with
                  | Yes -> fits_cube r.r_src s
                  | No -> No
                  | Unknown ->
                    (match fits_cube r.r_src s with
                     | Yes -> Unknown
                     | x -> x))
            else No
       else No
  else No

type 'a answer =
| Known of 'a
| Divide of pattern
| Refuse

let undecided r d =
  match fits_class r.r_dst d with
  | Unknown -> Divide r.r_dst
  | _ -> Refuse

let pattern_eqb a b =
  (&&) (N.eqb (Stdlib.fst a) (Stdlib.fst b))
    (N.eqb (Stdlib.snd a) (Stdlib.snd b))

let action_eqb a b =
  match a with
  | Push -> (match b with
             | Push -> true
             | _ -> false)
  | Pop -> (match b with
            | Pop -> true
            | _ -> false)
  | SetVid x -> (match b with
                 | SetVid y -> N.eqb x y
                 | _ -> false)
  | SetPcp x -> (match b with
                 | SetPcp y -> N.eqb x y
                 | _ -> false)
  | Output x -> (match b with
                 | Output y -> N.eqb x y
                 | _ -> false)
  | Back -> (match b with
             | Back -> true
             | _ -> false)
  | Group x -> (match b with
                | Group y -> N.eqb x y
                | _ -> false)

let rec actions_eqb a b =
  match a with
  | [] -> (match b with
           | [] -> true
           | _ :: _ -> false)
  | x :: a0 ->
    (match b with
     | [] -> false
     | y :: b0 -> (&&) (action_eqb x y) (actions_eqb a0 b0))

let rec patterns_eqb a b =
  match a with
  | [] -> (match b with
           | [] -> true
           | _ :: _ -> false)
  | x :: a0 ->
    (match b with
     | [] -> false
     | y :: b0 -> (&&) (pattern_eqb x y) (patterns_eqb a0 b0))

let does_as a b =
  (&&)
    ((&&)
      ((&&) (actions_eqb a.r_acts b.r_acts) (pattern_eqb a.r_write b.r_write))
      (patterns_eqb a.r_writes b.r_writes))
    (match a.r_goto with
     | Some x -> (match b.r_goto with
                  | Some y -> eqb x y
                  | None -> false)
     | None -> (match b.r_goto with
                | Some _ -> false
                | None -> true))

let rec in_level l meta v p d s =
  match l with
  | [] -> Known []
  | r :: more ->
    (match matches_class r meta v p d s with
     | Yes ->
       (match in_level more meta v p d s with
        | Known hits ->
          Known (if existsb (does_as r) hits then hits else r :: hits)
        | x -> x)
     | No -> in_level more meta v p d s
     | Unknown -> undecided r d)

let rec in_table t0 meta v p d s =
  match t0 with
  | [] -> Known []
  | level :: lower ->
    (match in_level level meta v p d s with
     | Known a ->
       (match a with
        | [] -> in_table lower meta v p d s
        | r :: l -> Known (r :: l))
     | x -> x)

let rec collect f = function
| [] -> Known []
| x :: l0 ->
  (match f x with
   | Known a ->
     (match collect f l0 with
      | Known b -> Known (app a b)
      | x0 -> x0)
   | x0 -> x0)

let rules_of_port port t0 =
  map (filter (fun r -> fits r.r_port port)) t0

let rec handle sw port d s l at_table target0 meta ts =
  match l with
  | [] -> Known ([] :: [])
  | t0 :: l0 ->
    if eqb at_table target0
    then (match in_table t0 meta (vid ts) (pcp ts) d s with
          | Known hits ->
            (match hits with
             | [] -> Known ([] :: [])
             | _ :: _ ->
               let from_table = fun next ts' out0 w ->
                 match handle sw port d s l0 (Stdlib.Int.succ at_table) next
                         (written w meta) ts' with
                 | Known outs -> Known (map (app out0) outs)
                 | x -> x
               in
               let effect_of = fun r e ->
                 match e with
                 | Some p ->
                   let (ts', out0) = p in
                   (match r.r_goto with
                    | Some next ->
                      if ltb at_table next
                      then collect (from_table next ts' out0)
                             (r.r_write :: r.r_writes)
                      else Refuse
                    | None -> Known (out0 :: []))
                 | None -> Refuse
               in
               collect (fun r ->
                 collect (effect_of r) (apply sw port r.r_acts ts [])) hits)
          | Divide p -> Divide p
          | Refuse -> Refuse)
    else handle sw port d s l0 (Stdlib.Int.succ at_table) target0 meta ts

let half one d p =
  let (value, mask) = Stdlib.fst d in
  let bit = N.log2 (N.ldiff (Stdlib.snd p) mask) in
  (((if one then N.setbit value bit else N.clearbit value bit),
  (N.setbit mask bit)), (Stdlib.snd d))

type outcome =
| Exactly of int list
| ToOwner

let outcome_and a b =
  match a with
  | Exactly l ->
    (match l with
     | [] ->
       (match b with
        | Exactly l' -> Some (Exactly (app l l'))
        | ToOwner -> Some ToOwner)
     | _ :: _ ->
       (match b with
        | Exactly l' -> Some (Exactly (app l l'))
        | ToOwner -> None))
  | ToOwner ->
    (match b with
     | Exactly l -> (match l with
                     | [] -> Some ToOwner
                     | _ :: _ -> None)
     | ToOwner -> None)

let to_owner owners = function
| Exactly l ->
  (match l with
   | [] -> (match owners with
            | [] -> true
            | _ :: _ -> false)
   | h :: l0 ->
     (match l0 with
      | [] ->
        (match owners with
         | [] -> true
         | w :: l1 -> (match l1 with
                       | [] -> N.eqb h w
                       | _ :: _ -> false))
      | _ :: _ -> (match owners with
                   | [] -> true
                   | _ :: _ -> false)))
| ToOwner -> true

let rec list_eqb a b =
  match a with
  | [] -> (match b with
           | [] -> true
           | _ :: _ -> false)
  | x :: a0 ->
    (match b with
     | [] -> false
     | y :: b0 -> (&&) (N.eqb x y) (list_eqb a0 b0))

module NOrder =
 struct
  type t = int

  let leb =
    N.leb
 end

module NSort = Sort(NOrder)

let same_members a b =
  (||) (list_eqb a b) (list_eqb (NSort.sort a) (NSort.sort b))

let only_owner address d owners = function
| Exactly l ->
  (match l with
   | [] -> (match owners with
            | [] -> true
            | _ :: _ -> false)
   | h :: l0 ->
     (match l0 with
      | [] ->
        (match owners with
         | [] -> false
         | w :: l1 ->
           (match l1 with
            | [] ->
              (&&)
                ((&&)
                  ((&&) (N.eqb h w)
                    (N.eqb (Stdlib.snd (Stdlib.fst d))
                      (N.ones ((fun p->2*p) ((fun p->2*p) ((fun p->2*p)
                        ((fun p->2*p) ((fun p->1+2*p) 1))))))))
                  (N.eqb (Stdlib.fst (Stdlib.fst d)) (address w)))
                (N.leb (address w)
                  (N.ones ((fun p->2*p) ((fun p->2*p) ((fun p->2*p)
                    ((fun p->2*p) ((fun p->1+2*p) 1)))))))
            | _ :: _ -> false))
      | _ :: _ -> false))
| ToOwner -> true

let join address d d' owners owners' o o' =
  let owner =
    if (&&) (only_owner address d owners o) (only_owner address d' owners' o')
    then Some ToOwner
    else None
  in
  (match o with
   | Exactly l ->
     (match o' with
      | Exactly l' -> if same_members l l' then Some o else owner
      | ToOwner -> owner)
   | ToOwner -> owner)

type ranking = { rank : (int -> int); bound : int }

let tag_eqb a b =
  (&&) (N.eqb (Stdlib.fst a) (Stdlib.fst b))
    (N.eqb (Stdlib.snd a) (Stdlib.snd b))

let rec stack_eqb a b =
  match a with
  | [] -> (match b with
           | [] -> true
           | _ :: _ -> false)
  | x :: a0 ->
    (match b with
     | [] -> false
     | y :: b0 -> (&&) (tag_eqb x y) (stack_eqb a0 b0))

let rec assoc ts = function
| [] -> None
| p :: more ->
  let (seen, o) = p in if stack_eqb ts seen then Some o else assoc ts more

let recall m c ts =
  match Map.find m c with
  | Some l -> assoc ts l
  | None -> None

let remember m c ts o =
  Map.add m c ((ts, o) :: (match Map.find m c with
                           | Some l -> l
                           | None -> []))

let owners_in fab d owners =
  filter (fun h -> in_class d (fab.mac h)) owners

let arrive fab rules c d s ts =
  let (at_switch, port) = fab.entering c in
  let with_version = fun v ->
    match handle (Stdlib.fst v) port d s (Stdlib.snd v) 0 0 0 ts with
    | Known choices ->
      Known (map (map (resolved fab at_switch (Stdlib.fst v))) choices)
    | Divide p -> Divide p
    | Refuse -> Refuse
  in
  collect with_version (rules c)

let rec follow_all delivery fab rk go from m = function
| [] -> Some (m, (Exactly []))
| o :: more ->
  let (t0, ts) = o in
  (match t0 with
   | ToHost h ->
     if delivery
     then (match ts with
           | [] ->
             (match follow_all delivery fab rk go from m more with
              | Some p ->
                let (m0, o0) = p in
                (match o0 with
                 | Exactly l -> Some (m0, (Exactly (h :: l)))
                 | ToOwner -> None)
              | None -> None)
           | _ :: _ -> None)
     else follow_all delivery fab rk go from m more
   | ToChannel c ->
     let next = rk.rank (queue_of fab c ts) in
     if (&&) ((&&) (N.ltb (rk.rank from) next) (N.leb next rk.bound))
          (not ((&&) delivery (fab.may_fail c)))
     then (match go m c ts with
           | Some p ->
             let (m0, o0) = p in
             (match follow_all delivery fab rk go from m0 more with
              | Some p0 ->
                let (m1, o') = p0 in
                (match outcome_and o0 o' with
                 | Some o1 -> Some (m1, o1)
                 | None -> None)
              | None -> None)
           | None -> None)
     else None
   | Nowhere -> follow_all delivery fab rk go from m more)

let rec follow_each delivery fab rk go from d owners m = function
| [] -> None
| outs :: more ->
  (match more with
   | [] -> follow_all delivery fab rk go from m outs
   | _ :: _ ->
     (match follow_all delivery fab rk go from m outs with
      | Some p ->
        let (m0, o) = p in
        (match follow_each delivery fab rk go from d owners m0 more with
         | Some p0 ->
           let (m1, o') = p0 in
           (match join fab.mac d d owners owners o o' with
            | Some o0 -> Some (m1, o0)
            | None -> None)
         | None -> None)
      | None -> None))

let rec follow delivery fab rk rules blank fuel d owners s m c ts =
  match recall m c ts with
  | Some o -> Some (m, o)
  | None ->
    ((fun fO fS n -> if n=0 then fO () else fS (n-1))
       (fun _ -> None)
       (fun fuel0 ->
       match arrive fab rules c d s ts with
       | Known choices ->
         (match follow_each delivery fab rk
                  (follow delivery fab rk rules blank fuel0 d owners s)
                  (queue_of fab c ts) d owners m choices with
          | Some p -> let (m0, o) = p in Some ((remember m0 c ts o), o)
          | None -> None)
       | Divide p ->
         let part = fun d' ->
           follow delivery fab rk rules blank fuel0 d'
             (owners_in fab d' owners) s blank c ts
         in
         let zero = half false d p in
         let one = half true d p in
         (match part zero with
          | Some p0 ->
            let (_, o) = p0 in
            (match part one with
             | Some p1 ->
               let (_, o') = p1 in
               (match join fab.mac zero one (owners_in fab zero owners)
                        (owners_in fab one owners) o o' with
                | Some o0 -> Some ((remember m c ts o0), o0)
                | None -> None)
             | None -> None)
          | None -> None)
       | Refuse -> None)
       fuel)

let receives fab everybody d owners h o =
  let other = fun r -> not (N.eqb r h) in
  if in_class d fab.broadcast
  then (match owners with
        | [] ->
          (match o with
           | Exactly l -> list_eqb (filter other everybody) (NSort.sort l)
           | ToOwner -> false)
        | _ :: _ -> false)
  else to_owner (filter other owners) o

let rec from_one delivery fab rk rules blank fuel fuel' everybody s h d owners m =
  match arrive fab rules (fab.from_host h) d ((fab.mac h),
          (N.ones ((fun p->2*p) ((fun p->2*p) ((fun p->2*p) ((fun p->2*p)
            ((fun p->1+2*p) 1))))))) [] with
  | Known choices ->
    (match follow_each delivery fab rk
             (follow delivery fab rk rules blank fuel d owners s)
             (queue_of fab (fab.from_host h) []) d owners m choices with
     | Some p ->
       let (m0, o) = p in
       if (||) (not delivery) (receives fab everybody d owners h o)
       then Some m0
       else None
     | None -> None)
  | Divide p ->
    ((fun fO fS n -> if n=0 then fO () else fS (n-1))
       (fun _ -> None)
       (fun fuel'0 ->
       let part = fun d' ->
         from_one delivery fab rk rules blank fuel fuel'0 everybody s h d'
           (owners_in fab d' owners) blank
       in
       (match part (half false d p) with
        | Some _ ->
          (match part (half true d p) with
           | Some _ -> Some m
           | None -> None)
        | None -> None))
       fuel')
  | Refuse -> None

let rec from_hosts delivery fab rk rules blank fuel everybody any_source d owners m = function
| [] -> true
| h :: more ->
  let s =
    if any_source
    then (0, 0)
    else ((fab.mac h),
           (N.ones ((fun p->2*p) ((fun p->2*p) ((fun p->2*p) ((fun p->2*p)
             ((fun p->1+2*p) 1)))))))
  in
  let m0 = if any_source then m else blank in
  (match from_one delivery fab rk rules blank fuel fuel everybody s h d
           owners m0 with
   | Some m1 ->
     from_hosts delivery fab rk rules blank fuel everybody any_source d
       owners m1 more
   | None -> false)

let check_class delivery fab rk rules blank fuel everybody d =
  let owners = owners_in fab d fab.hosts in
  (||)
    (from_hosts delivery fab rk rules blank fuel everybody true d owners
      blank fab.hosts)
    (from_hosts delivery fab rk rules blank fuel everybody false d owners
      blank fab.hosts)

let dividing_bit bits decided cubes =
  let undecided0 =
    filter (fun i -> not (N.testbit decided i)) (map N.of_nat (seq 0 bits))
  in
  let tests = fun i ->
    N.of_nat (length (filter (fun p -> N.testbit (Stdlib.snd p) i) cubes))
  in
  let better = fun best i ->
    let n0 = tests i in if N.leb (Stdlib.fst best) n0 then (n0, i) else best
  in
  Stdlib.snd (fold_left better undecided0 (0, 0))

let rec divided fuel bits decided cubes = match cubes with
| [] -> false
| _ :: _ ->
  (||) (existsb (fun p -> N.eqb (N.ldiff (Stdlib.snd p) decided) 0) cubes)
    ((fun fO fS n -> if n=0 then fO () else fS (n-1))
       (fun _ -> false)
       (fun fuel0 ->
       let bit = dividing_bit bits decided cubes in
       let side = fun one p ->
         (||) (not (N.testbit (Stdlib.snd p) bit))
           (eqb0 (N.testbit (Stdlib.fst p) bit) one)
       in
       (&&)
         (divided fuel0 bits (N.setbit decided bit)
           (filter (side false) cubes))
         (divided fuel0 bits (N.setbit decided bit)
           (filter (side true) cubes)))
       fuel)

let cover bits cubes =
  divided bits bits 0 cubes

let rec exceptions_follow = function
| [] -> true
| c :: more ->
  (&&)
    (forallb (fun e -> existsb (pattern_eqb e) (map Stdlib.fst more))
      (Stdlib.snd c)) (exceptions_follow more)

let tables_of fab c =
  let (at_switch, port) = fab.entering c in
  map (fun sw -> (sw, (map (rules_of_port port) sw.tables)))
    (fab.versions at_switch)

let prepare fab bits channels =
  fold_left (fun m c -> Map.add m c (tables_of fab c)) channels
    (Map.empty bits)

let prepared fab ready c =
  match Map.find ready c with
  | Some l -> l
  | None -> tables_of fab c

let check delivery fab rk fuel channels classes =
  let bits = N.size_nat (N.of_nat (length channels)) in
  let rules = prepared fab (prepare fab bits channels) in
  let everybody = NSort.sort fab.hosts in
  forallb (check_class delivery fab rk rules (Map.empty bits) fuel everybody)
    classes

let check_all delivery fab rk fuel channels classes =
  (&&)
    ((&&)
      ((&&)
        (forallb (fun c ->
          N.leb (Stdlib.snd (Stdlib.fst c))
            (N.ones ((fun p->2*p) ((fun p->2*p) ((fun p->2*p) ((fun p->2*p)
              ((fun p->1+2*p) 1))))))) classes) (exceptions_follow classes))
      (cover (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
        (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
        (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
        (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
        (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
        (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
        (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
        (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
        (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
        (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
        (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
        (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
        (Stdlib.Int.succ 0))))))))))))))))))))))))))))))))))))))))))))))))
        (map Stdlib.fst classes)))
    (check delivery fab rk fuel channels classes)
