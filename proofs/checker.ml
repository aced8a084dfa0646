type __ = Obj.t
let __ = let rec f _ = Obj.repr f in Obj.repr f

let rec app l m =
  match l with
  | [] -> m
  | a :: l1 -> a :: (app l1 m)

type comparison =
| Eq
| Lt
| Gt

let rec eqb n0 m =
  (fun fO fS n -> if n=0 then fO () else fS (n-1))
    (fun _ ->
    (fun fO fS n -> if n=0 then fO () else fS (n-1))
      (fun _ -> true)
      (fun _ -> false)
      m)
    (fun n' ->
    (fun fO fS n -> if n=0 then fO () else fS (n-1))
      (fun _ -> false)
      (fun m' -> eqb n' m')
      m)
    n0

let rec leb n0 m =
  (fun fO fS n -> if n=0 then fO () else fS (n-1))
    (fun _ -> true)
    (fun n' ->
    (fun fO fS n -> if n=0 then fO () else fS (n-1))
      (fun _ -> false)
      (fun m' -> leb n' m')
      m)
    n0

let ltb n0 m =
  leb (Stdlib.Int.succ n0) m

let eqb0 b1 b2 =
  if b1 then b2 else if b2 then false else true

module type EqLtLe =
 sig
 end

module type TotalLeBool' =
 sig
  type t

  val leb : t -> t -> bool
 end

module Pos =
 struct
  let rec eqb p q =
    (fun f2p1 f2p f1 p ->
  if p<=1 then f1 () else if p mod 2 = 0 then f2p (p/2) else f2p1 (p/2))
      (fun p0 ->
      (fun f2p1 f2p f1 p ->
  if p<=1 then f1 () else if p mod 2 = 0 then f2p (p/2) else f2p1 (p/2))
        (fun q0 -> eqb p0 q0)
        (fun _ -> false)
        (fun _ -> false)
        q)
      (fun p0 ->
      (fun f2p1 f2p f1 p ->
  if p<=1 then f1 () else if p mod 2 = 0 then f2p (p/2) else f2p1 (p/2))
        (fun _ -> false)
        (fun q0 -> eqb p0 q0)
        (fun _ -> false)
        q)
      (fun _ ->
      (fun f2p1 f2p f1 p ->
  if p<=1 then f1 () else if p mod 2 = 0 then f2p (p/2) else f2p1 (p/2))
        (fun _ -> false)
        (fun _ -> false)
        (fun _ -> true)
        q)
      p

  let rec eq_dec p x0 =
    (fun f2p1 f2p f1 p ->
  if p<=1 then f1 () else if p mod 2 = 0 then f2p (p/2) else f2p1 (p/2))
      (fun p0 ->
      (fun f2p1 f2p f1 p ->
  if p<=1 then f1 () else if p mod 2 = 0 then f2p (p/2) else f2p1 (p/2))
        (fun p1 -> eq_dec p0 p1)
        (fun _ -> false)
        (fun _ -> false)
        x0)
      (fun p0 ->
      (fun f2p1 f2p f1 p ->
  if p<=1 then f1 () else if p mod 2 = 0 then f2p (p/2) else f2p1 (p/2))
        (fun _ -> false)
        (fun p1 -> eq_dec p0 p1)
        (fun _ -> false)
        x0)
      (fun _ ->
      (fun f2p1 f2p f1 p ->
  if p<=1 then f1 () else if p mod 2 = 0 then f2p (p/2) else f2p1 (p/2))
        (fun _ -> false)
        (fun _ -> false)
        (fun _ -> true)
        x0)
      p
 end

module N =
 struct
  let add = (+)

  let compare = fun (a:int) (b:int) -> if a = b then Eq else if a < b then Lt else Gt

  let eqb = fun (a:int) (b:int) -> a = b

  let leb = fun (a:int) (b:int) -> a <= b

  let ltb = fun (a:int) (b:int) -> a < b

  let ldiff = fun (a:int) (b:int) -> a land (lnot b)

  let testbit = fun (a:int) (b:int) -> (a lsr b) land 1 = 1

  let of_nat = fun (a:int) -> a

  let eq_dec n0 m =
    (fun f0 fp n -> if n=0 then f0 () else fp n)
      (fun _ ->
      (fun f0 fp n -> if n=0 then f0 () else fp n)
        (fun _ -> true)
        (fun _ -> false)
        m)
      (fun p ->
      (fun f0 fp n -> if n=0 then f0 () else fp n)
        (fun _ -> false)
        (fun p0 -> Pos.eq_dec p p0)
        m)
      n0

  let setbit = fun (a:int) (b:int) -> a lor (1 lsl b)

  let ones = fun (a:int) -> (1 lsl a) - 1
 end

let rec nth n0 l default =
  (fun fO fS n -> if n=0 then fO () else fS (n-1))
    (fun _ -> match l with
              | [] -> default
              | x :: _ -> x)
    (fun m -> match l with
              | [] -> default
              | _ :: t0 -> nth m t0 default)
    n0

let rec map f = function
| [] -> []
| a :: t0 -> (f a) :: (map f t0)

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

module Z =
 struct
  let add = (+)

  let opp = (~-)

  let sub = (-)

  let mul = ( * )

  let compare = fun x y -> if x=y then Eq else if x<y then Lt else Gt

  let leb x y =
    match compare x y with
    | Gt -> false
    | _ -> true

  let ltb x y =
    match compare x y with
    | Lt -> true
    | _ -> false

  let eqb x y =
    (fun f0 fp fn z -> if z=0 then f0 () else if z>0 then fp z else fn (-z))
      (fun _ ->
      (fun f0 fp fn z -> if z=0 then f0 () else if z>0 then fp z else fn (-z))
        (fun _ -> true)
        (fun _ -> false)
        (fun _ -> false)
        y)
      (fun p ->
      (fun f0 fp fn z -> if z=0 then f0 () else if z>0 then fp z else fn (-z))
        (fun _ -> false)
        (fun q -> Pos.eqb p q)
        (fun _ -> false)
        y)
      (fun p ->
      (fun f0 fp fn z -> if z=0 then f0 () else if z>0 then fp z else fn (-z))
        (fun _ -> false)
        (fun _ -> false)
        (fun q -> Pos.eqb p q)
        y)
      x

  let max = fun (a:int) (b:int) -> if a < b then b else a

  let eq_dec = fun (a:int) (b:int) -> a = b
 end

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
| Group of int

type rule = { r_port : pattern; r_dst : pattern; r_src : pattern;
              r_vid : pattern; r_pcp : pattern; r_meta : pattern;
              r_acts : action list; r_write : pattern; r_goto : int option }

type table = rule list list

type switch = { tables : table list; groups : (int * action list list) list }

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
  | [] -> Some (ts, out0)
  | one :: more ->
    (match one with
     | Group g ->
       (match group_of g sw.groups with
        | Some content ->
          (match buckets port content ts out0 with
           | Some out1 -> apply sw port more ts out1
           | None -> None)
        | None -> None)
     | _ ->
       (match bucket port (one :: []) ts out0 with
        | Some p -> let (ts0, out1) = p in apply sw port more ts0 out1
        | None -> None))

let written w meta =
  (lor) (N.ldiff meta (Stdlib.snd w)) ((land) (Stdlib.fst w) (Stdlib.snd w))

type target =
| ToHost of int
| ToChannel of int
| Nowhere

type fabric = { switch_of : (int -> switch);
                leaving : (int -> int -> target);
                entering : (int -> int * int); from_host : (int -> int);
                hosts : int list; mac : (int -> int); broadcast : int;
                queue : (int -> int -> int) }

let resolved fab s c =
  ((fab.leaving s (Stdlib.fst c)), (Stdlib.snd c))

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

type 'x compare0 =
| LT
| EQ
| GT

module type OrderedType =
 sig
  type t

  val compare : t -> t -> t compare0

  val eq_dec : t -> t -> bool
 end

module type Int =
 sig
  type t

  val i2z : t -> int

  val _0 : t

  val _1 : t

  val _2 : t

  val _3 : t

  val add : t -> t -> t

  val opp : t -> t

  val sub : t -> t -> t

  val mul : t -> t -> t

  val max : t -> t -> t

  val eqb : t -> t -> bool

  val ltb : t -> t -> bool

  val leb : t -> t -> bool

  val gt_le_dec : t -> t -> bool

  val ge_lt_dec : t -> t -> bool

  val eq_dec : t -> t -> bool
 end

module Z_as_Int =
 struct
  type t = int

  let _0 =
    0

  let _1 =
    1

  let _2 =
    ((fun p->2*p) 1)

  let _3 =
    ((fun p->1+2*p) 1)

  let add =
    Z.add

  let opp =
    Z.opp

  let sub =
    Z.sub

  let mul =
    Z.mul

  let max =
    Z.max

  let eqb =
    Z.eqb

  let ltb =
    Z.ltb

  let leb =
    Z.leb

  let eq_dec =
    Z.eq_dec

  let gt_le_dec i j =
    let b = Z.ltb j i in if b then true else false

  let ge_lt_dec i j =
    let b = Z.ltb i j in if b then false else true

  let i2z n0 =
    n0
 end

module Coq_Raw =
 functor (I:Int) ->
 functor (X:OrderedType) ->
 struct
  type key = X.t

  type 'elt tree =
  | Leaf
  | Node of 'elt tree * key * 'elt * 'elt tree * I.t

  let height = function
  | Leaf -> I._0
  | Node (_, _, _, _, h) -> h

  let empty =
    Leaf

  let rec find x = function
  | Leaf -> None
  | Node (l, y, d, r, _) ->
    (match X.compare x y with
     | LT -> find x l
     | EQ -> Some d
     | GT -> find x r)

  let create l x e r =
    Node (l, x, e, r, (I.add (I.max (height l) (height r)) I._1))

  let assert_false =
    create

  let bal l x d r =
    let hl = height l in
    let hr = height r in
    if I.gt_le_dec hl (I.add hr I._2)
    then (match l with
          | Leaf -> assert_false l x d r
          | Node (ll, lx, ld, lr, _) ->
            if I.ge_lt_dec (height ll) (height lr)
            then create ll lx ld (create lr x d r)
            else (match lr with
                  | Leaf -> assert_false l x d r
                  | Node (lrl, lrx, lrd, lrr, _) ->
                    create (create ll lx ld lrl) lrx lrd (create lrr x d r)))
    else if I.gt_le_dec hr (I.add hl I._2)
         then (match r with
               | Leaf -> assert_false l x d r
               | Node (rl, rx, rd, rr, _) ->
                 if I.ge_lt_dec (height rr) (height rl)
                 then create (create l x d rl) rx rd rr
                 else (match rl with
                       | Leaf -> assert_false l x d r
                       | Node (rll, rlx, rld, rlr, _) ->
                         create (create l x d rll) rlx rld
                           (create rlr rx rd rr)))
         else create l x d r

  let rec add x d = function
  | Leaf -> Node (Leaf, x, d, Leaf, I._1)
  | Node (l, y, d', r, h) ->
    (match X.compare x y with
     | LT -> bal (add x d l) y d' r
     | EQ -> Node (l, y, d, r, h)
     | GT -> bal l y d' (add x d r))

 end

module IntMake =
 functor (I:Int) ->
 functor (X:OrderedType) ->
 struct
  module Raw = Coq_Raw(I)(X)

  let this b =
    b

  let empty =
    Raw.empty

  let add x e m =
    Raw.add x e (this m)

  let find x m =
    Raw.find x (this m)

 end

module Make =
 functor (X:OrderedType) ->
 IntMake(Z_as_Int)(X)

module N_as_OT =
 struct
  type t = int

  let compare x y =
    match N.compare x y with
    | Eq -> EQ
    | Lt -> LT
    | Gt -> GT

  let eq_dec =
    N.eq_dec
 end

module Memo = Make(N_as_OT)

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

let tri_and a b =
  match a with
  | Yes -> b
  | No -> No
  | Unknown -> (match b with
                | Yes -> Unknown
                | x -> x)

let matches_cube r port meta d s ts =
  if fits r.r_port port
  then if fits r.r_meta meta
       then if fits r.r_vid (vid ts)
            then if fits r.r_pcp (pcp ts)
                 then (match fits_class r.r_dst d with
                       | Yes -> fits_cube r.r_src s
                       | No -> No
                       | Unknown -> tri_and Unknown (fits_cube r.r_src s))
                 else No
            else No
       else No
  else No

type choice =
| Miss
| Hit of rule
| Unclear

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

let does_as a b =
  (&&)
    ((&&) (actions_eqb a.r_acts b.r_acts) (pattern_eqb a.r_write b.r_write))
    (match a.r_goto with
     | Some x -> (match b.r_goto with
                  | Some y -> eqb x y
                  | None -> false)
     | None -> (match b.r_goto with
                | Some _ -> false
                | None -> true))

let rec no_other r l port meta d s ts =
  match l with
  | [] -> true
  | r' :: more ->
    (match matches_cube r' port meta d s ts with
     | No -> no_other r more port meta d s ts
     | _ -> (&&) (does_as r' r) (no_other r more port meta d s ts))

let rec in_level l port meta d s ts =
  match l with
  | [] -> Miss
  | r :: more ->
    (match matches_cube r port meta d s ts with
     | Yes -> if no_other r more port meta d s ts then Hit r else Unclear
     | No -> in_level more port meta d s ts
     | Unknown -> Unclear)

let rec in_table t0 port meta d s ts =
  match t0 with
  | [] -> Miss
  | level :: lower ->
    (match in_level level port meta d s ts with
     | Miss -> in_table lower port meta d s ts
     | x -> x)

let rec handle fuel sw port d s t0 meta ts =
  match in_table (nth t0 sw.tables []) port meta d s ts with
  | Miss -> Some []
  | Hit r ->
    (match apply sw port r.r_acts ts [] with
     | Some p ->
       let (ts', out0) = p in
       (match r.r_goto with
        | Some t' ->
          ((fun fO fS n -> if n=0 then fO () else fS (n-1))
             (fun _ -> None)
             (fun fuel0 ->
             if ltb t0 t'
             then (match handle fuel0 sw port d s t' (written r.r_write meta)
                           ts' with
                   | Some out' -> Some (app out0 out')
                   | None -> None)
             else None)
             fuel)
        | None -> Some out0)
     | None -> None)
  | Unclear -> None

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
  let (seen, f) = p in if stack_eqb ts seen then Some f else assoc ts more

let recall m c ts =
  match Memo.find c m with
  | Some l -> assoc ts l
  | None -> None

let remember m c ts f =
  Memo.add c ((ts, f) :: (match Memo.find c m with
                          | Some l -> l
                          | None -> [])) m

let arrive fab max_tables c d s ts =
  let (at_switch, port) = fab.entering c in
  (match handle max_tables (fab.switch_of at_switch) port d s 0 0 ts with
   | Some copies -> Some (map (resolved fab at_switch) copies)
   | None -> None)

let rec follow_all fab rk go from m = function
| [] -> Some (m, (1, []))
| o :: more ->
  let (t0, ts) = o in
  (match t0 with
   | ToHost h ->
     (match ts with
      | [] ->
        (match follow_all fab rk go from m more with
         | Some p ->
           let (m0, o0) = p in
           let (k, to0) = o0 in Some (m0, ((N.add 1 k), (h :: to0)))
         | None -> None)
      | _ :: _ -> None)
   | ToChannel c ->
     let next = rk.rank (queue_of fab c ts) in
     if (&&) (N.ltb (rk.rank from) next) (N.leb next rk.bound)
     then (match go m c ts with
           | Some p ->
             let (m0, o0) = p in
             let (k, to0) = o0 in
             (match follow_all fab rk go from m0 more with
              | Some p0 ->
                let (m1, o1) = p0 in
                let (k', to') = o1 in
                Some (m1, ((N.add (N.add 1 k) k'), (app to0 to')))
              | None -> None)
           | None -> None)
     else None
   | Nowhere ->
     (match follow_all fab rk go from m more with
      | Some p ->
        let (m0, o0) = p in let (k, to0) = o0 in Some (m0, ((N.add 1 k), to0))
      | None -> None))

let rec follow fab rk max_tables fuel d s m c ts =
  match recall m c ts with
  | Some f -> Some (m, f)
  | None ->
    ((fun fO fS n -> if n=0 then fO () else fS (n-1))
       (fun _ -> None)
       (fun fuel0 ->
       match arrive fab max_tables c d s ts with
       | Some outs ->
         (match follow_all fab rk (follow fab rk max_tables fuel0 d s)
                  (queue_of fab c ts) m outs with
          | Some p -> let (m0, f) = p in Some ((remember m0 c ts f), f)
          | None -> None)
       | None -> None)
       fuel)

module NOrder =
 struct
  type t = int

  let leb =
    N.leb
 end

module NSort = Sort(NOrder)

let rec list_eqb a b =
  match a with
  | [] -> (match b with
           | [] -> true
           | _ :: _ -> false)
  | x :: a0 ->
    (match b with
     | [] -> false
     | y :: b0 -> (&&) (N.eqb x y) (list_eqb a0 b0))

let exact =
  N.ones ((fun p->2*p) ((fun p->2*p) ((fun p->2*p) ((fun p->2*p)
    ((fun p->1+2*p) 1)))))

let receives fab d of_class h to0 =
  if in_class d fab.broadcast
  then list_eqb (NSort.sort (filter (fun r -> not (N.eqb r h)) fab.hosts))
         (NSort.sort to0)
  else (match of_class with
        | [] -> true
        | w :: l0 ->
          (match l0 with
           | [] ->
             (||) (N.eqb w h)
               (match to0 with
                | [] -> false
                | x :: l -> (match l with
                             | [] -> N.eqb x w
                             | _ :: _ -> false))
           | _ :: _ -> false))

let rec from_hosts fab rk max_tables fuel any_source d of_class m = function
| [] -> true
| h :: more ->
  let own = ((fab.mac h), exact) in
  let s = if any_source then (0, 0) else own in
  let m0 = if any_source then m else Memo.empty in
  (match arrive fab max_tables (fab.from_host h) d own [] with
   | Some outs ->
     (match follow_all fab rk (follow fab rk max_tables fuel d s)
              (queue_of fab (fab.from_host h) []) m0 outs with
      | Some p ->
        let (m1, o) = p in
        let (_, to0) = o in
        (&&) (receives fab d of_class h to0)
          (from_hosts fab rk max_tables fuel any_source d of_class m1 more)
      | None -> false)
   | None -> false)

let check_class fab rk max_tables fuel d =
  let of_class = filter (fun h -> in_class d (fab.mac h)) fab.hosts in
  (&&)
    (match of_class with
     | [] -> true
     | _ :: l ->
       (match l with
        | [] ->
          (&&) (N.eqb (Stdlib.snd (Stdlib.fst d)) exact)
            (not (in_class d fab.broadcast))
        | _ :: _ -> false))
    ((||)
      (from_hosts fab rk max_tables fuel true d of_class Memo.empty fab.hosts)
      (from_hosts fab rk max_tables fuel false d of_class Memo.empty
        fab.hosts))

let dividing_bit bits decided cubes =
  let common =
    N.ldiff
      (fold_left (land) (map Stdlib.snd cubes) (N.ones (N.of_nat bits)))
      decided
  in
  let first =
    N.ldiff (match cubes with
             | [] -> 0
             | p :: _ -> Stdlib.snd p) decided
  in
  let tested = if N.eqb common 0 then first else common in
  (match find (N.testbit tested) (map N.of_nat (seq 0 bits)) with
   | Some i -> i
   | None -> 0)

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

let check fab rk max_tables fuel classes =
  forallb (check_class fab rk max_tables fuel) classes

let rec exceptions_follow = function
| [] -> true
| c :: more ->
  (&&)
    (forallb (fun e -> existsb (pattern_eqb e) (map Stdlib.fst more))
      (Stdlib.snd c)) (exceptions_follow more)

let check_all fab rk max_tables fuel classes =
  (&&)
    ((&&)
      ((&&)
        (forallb (fun c -> N.leb (Stdlib.snd (Stdlib.fst c)) exact) classes)
        (exceptions_follow classes))
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
        (map Stdlib.fst classes))) (check fab rk max_tables fuel classes)
