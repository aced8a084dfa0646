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

module N =
 struct
  let succ = fun (a:int) -> a + 1

  let pred = fun (a:int) -> if a = 0 then 0 else a - 1

  let eqb = fun (a:int) (b:int) -> a = b

  let leb = fun (a:int) (b:int) -> a <= b

  let ltb = fun (a:int) (b:int) -> a < b

  let max = fun (a:int) (b:int) -> if a < b then b else a

  let div2 = fun (a:int) -> a lsr 1

  let odd = fun (a:int) -> a land 1 = 1

  let log2 = fun (a:int) -> let rec go n k = if n < 2 then k else go (n lsr 1) (k + 1) in go a 0

  let ldiff = fun (a:int) (b:int) -> a land (lnot b)

  let shiftl = fun (a:int) (b:int) -> a lsl b

  let shiftr = fun (a:int) (b:int) -> a lsr b

  let testbit = fun (a:int) (b:int) -> (a lsr b) land 1 = 1

  let of_nat = fun (a:int) -> a

  let setbit = fun (a:int) (b:int) -> a lor (1 lsl b)

  let clearbit = fun (a:int) (b:int) -> a land (lnot (1 lsl b))

  let ones = fun (a:int) -> (1 lsl a) - 1
 end

let hd default = function
| [] -> default
| x :: _ -> x

let rec concat = function
| [] -> []
| x :: l0 -> app x (concat l0)

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

let rec fold_right f a0 = function
| [] -> a0
| b :: t0 -> f b (fold_right f a0 t0)

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

let rec seq start0 len =
  (fun fO fS n -> if n=0 then fO () else fS (n-1))
    (fun _ -> [])
    (fun len0 -> start0 :: (seq (Stdlib.Int.succ start0) len0))
    len

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
              r_more : bool; r_acts : action list; r_goto : int option;
              r_write : pattern; r_writes : pattern list }

type table = rule list list

type group =
| All of action list list
| Select of action list list
| Failover of (int * action list) list

type switch = { tables : table list; groups : (int * group) list;
                down : int list }

let is_down sw port =
  existsb (N.eqb port) sw.down

let rec group_of g = function
| [] -> None
| p :: more ->
  let (number, content) = p in
  if N.eqb g number then Some content else group_of g more

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

  let rec merge_list_to_stack stack l =
    match stack with
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

  let rec iter_merge stack = function
  | [] -> merge_stack stack
  | a :: l' -> iter_merge (merge_list_to_stack stack (a :: [])) l'

  let sort =
    iter_merge []

 end

module Map =
 struct
  type 'a tree =
  | Leaf
  | One of int * 'a
  | Node of 'a tree * 'a option * 'a tree

  let rec find t0 key =
    match t0 with
    | Leaf -> None
    | One (only, value) -> if N.eqb key only then Some value else None
    | Node (even0, value, odd0) ->
      if N.eqb key 0
      then value
      else if N.odd key
           then find odd0 (N.div2 key)
           else find even0 (N.div2 key)

  let rec two bits a x b y =
    (fun fO fS n -> if n=0 then fO () else fS (n-1))
      (fun _ -> Leaf)
      (fun bits0 ->
      let one = fun key value ->
        if N.odd key
        then Node (Leaf, None, (One ((N.div2 key), value)))
        else Node ((One ((N.div2 key), value)), None, Leaf)
      in
      let with_zero = fun t0 z ->
        match t0 with
        | Node (even0, _, odd0) -> Node (even0, (Some z), odd0)
        | _ -> t0
      in
      if N.eqb a 0
      then with_zero (one b y) x
      else if N.eqb b 0
           then with_zero (one a x) y
           else if N.odd a
                then if N.odd b
                     then Node (Leaf, None,
                            (two bits0 (N.div2 a) x (N.div2 b) y))
                     else Node ((One ((N.div2 b), y)), None, (One
                            ((N.div2 a), x)))
                else if N.odd b
                     then Node ((One ((N.div2 a), x)), None, (One
                            ((N.div2 b), y)))
                     else Node ((two bits0 (N.div2 a) x (N.div2 b) y), None,
                            Leaf))
      bits

  let rec add t0 key x =
    match t0 with
    | Leaf -> One (key, x)
    | One (only, value) ->
      if N.eqb key only
      then One (key, x)
      else two (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
             (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
             (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
             (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
             (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
             (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
             (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
             (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
             (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
             (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
             (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
             (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
             (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
             (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
             (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
             (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
             (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
             (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
             (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
             (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
             (Stdlib.Int.succ (Stdlib.Int.succ
             0))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))
             only value key x
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

type view =
| Bottom
| More
| Tag of int option * int option * view

let address_bits =
  N.ones ((fun p->2*p) ((fun p->2*p) ((fun p->2*p) ((fun p->2*p)
    ((fun p->1+2*p) 1)))))

let vlan_of x =
  N.shiftr x ((fun p->2*p) ((fun p->2*p) ((fun p->2*p) ((fun p->2*p)
    ((fun p->1+2*p) 1)))))

let exactly x =
  (x, address_bits)

let vids ts x =
  match ts with
  | Bottom -> exactly 0
  | More -> (0, 0)
  | Tag (v0, _, _) ->
    (match v0 with
     | Some v -> exactly v
     | None -> ((vlan_of (Stdlib.fst x)), (vlan_of (Stdlib.snd x))))

let priority = function
| Bottom -> Some 0
| More -> None
| Tag (_, p, _) -> p

let priorities =
  0 :: (1 :: (((fun p->2*p) 1) :: (((fun p->1+2*p) 1) :: (((fun p->2*p)
    ((fun p->2*p) 1)) :: (((fun p->1+2*p) ((fun p->2*p) 1)) :: (((fun p->2*p)
    ((fun p->1+2*p) 1)) :: (((fun p->1+2*p) ((fun p->1+2*p) 1)) :: [])))))))

let pcps ts =
  match priority ts with
  | Some p -> exactly p
  | None -> (0, 0)

let forget ts = match ts with
| Tag (v, p, _) -> Tag (v, p, More)
| _ -> ts

let rec has_chosen_vlan = function
| Tag (v, _, below) ->
  (match v with
   | Some _ -> has_chosen_vlan below
   | None -> true)
| _ -> false

let both a b =
  match a with
  | Yes -> b
  | No -> No
  | Unknown -> (match b with
                | Yes -> Unknown
                | x -> x)

let fits_source p x =
  if N.leb (Stdlib.snd p) address_bits then fits_cube p x else Unknown

let matches_class r meta v p d x =
  if fits r.r_meta meta
  then (match fits_cube r.r_vid v with
        | No -> No
        | x0 ->
          (match fits_cube r.r_pcp p with
           | No -> No
           | x1 ->
             (match fits_class r.r_dst d with
              | No -> No
              | x2 -> both (both x0 x1) (both x2 (fits_source r.r_src x)))))
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
      ((&&)
        ((&&) (actions_eqb a.r_acts b.r_acts)
          (pattern_eqb a.r_write b.r_write))
        (patterns_eqb a.r_writes b.r_writes)) (eqb0 a.r_more b.r_more))
    (match a.r_goto with
     | Some x -> (match b.r_goto with
                  | Some y -> eqb x y
                  | None -> false)
     | None -> (match b.r_goto with
                | Some _ -> false
                | None -> true))

let rec in_level l meta v p d x =
  match l with
  | [] -> Known []
  | r :: more ->
    (match matches_class r meta v p d x with
     | Yes ->
       (match in_level more meta v p d x with
        | Known hits ->
          Known (if existsb (does_as r) hits then hits else r :: hits)
        | x0 -> x0)
     | No -> in_level more meta v p d x
     | Unknown -> undecided r d)

let no_rule =
  { r_port = (0, 0); r_dst = (0, 0); r_src = (0, 0); r_vid = (0, 0); r_pcp =
    (0, 0); r_meta = (0, 0); r_more = false; r_acts = []; r_goto = None;
    r_write = (0, 0); r_writes = [] }

let rec in_table t0 meta v p d x =
  match t0 with
  | [] -> Known (no_rule :: [])
  | level :: lower ->
    (match in_level level meta v p d x with
     | Known hits ->
       if forallb (fun r -> r.r_more) hits
       then (match in_table lower meta v p d x with
             | Known others -> Known (app hits others)
             | x0 -> x0)
       else Known hits
     | x0 -> x0)

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

let rec do_bucket port acts ts out =
  match acts with
  | [] -> Some (ts, out)
  | one :: more ->
    (match one with
     | Output to0 ->
       do_bucket port more ts
         (if N.eqb to0 port then out else app out ((to0, ts) :: []))
     | Back -> do_bucket port more ts (app out ((port, ts) :: []))
     | _ ->
       (match one with
        | Push ->
          (match ts with
           | Bottom ->
             do_bucket port more (Tag ((Some ((fun p->2*p) ((fun p->2*p)
               ((fun p->2*p) ((fun p->2*p) ((fun p->2*p) ((fun p->2*p)
               ((fun p->2*p) ((fun p->2*p) ((fun p->2*p) ((fun p->2*p)
               ((fun p->2*p) ((fun p->2*p) 1))))))))))))), (Some 0), Bottom))
               out
           | More -> None
           | Tag (v, p, _) -> do_bucket port more (Tag (v, p, ts)) out)
        | Pop ->
          (match ts with
           | Tag (_, _, below) -> do_bucket port more below out
           | _ -> None)
        | SetVid v ->
          (match ts with
           | Tag (_, p, below) ->
             do_bucket port more (Tag ((Some v), p, below)) out
           | _ -> None)
        | SetPcp p ->
          (match ts with
           | Tag (v, _, below) ->
             do_bucket port more (Tag (v, (Some p), below)) out
           | _ -> None)
        | _ -> None))

let rec do_buckets port all ts out =
  match all with
  | [] -> Some out
  | one :: more ->
    (match do_bucket port one ts out with
     | Some p -> let (_, out0) = p in do_buckets port more ts out0
     | None -> None)

let rec perform sw port acts ts out =
  match acts with
  | [] -> (Some (ts, out)) :: []
  | one :: more ->
    (match one with
     | Group g ->
       let from_bucket = fun one0 ->
         match do_bucket port one0 ts out with
         | Some p -> let (_, out0) = p in perform sw port more ts out0
         | None -> None :: []
       in
       (match group_of g sw.groups with
        | Some g0 ->
          (match g0 with
           | All content ->
             (match do_buckets port content ts out with
              | Some out0 -> perform sw port more ts out0
              | None -> None :: [])
           | Select content ->
             (match content with
              | [] -> perform sw port more ts out
              | _ :: _ -> flat_map from_bucket content)
           | Failover content ->
             (match find (fun one0 -> not (is_down sw (Stdlib.fst one0)))
                      content with
              | Some p -> let (_, one0) = p in from_bucket one0
              | None -> perform sw port more ts out))
        | None -> None :: [])
     | _ ->
       (match do_bucket port (one :: []) ts out with
        | Some p -> let (ts0, out0) = p in perform sw port more ts0 out0
        | None -> None :: []))

let rec handle sw port d x l at_table target0 meta ts =
  match l with
  | [] -> Known ([] :: [])
  | t0 :: l0 ->
    if eqb at_table target0
    then (match in_table t0 meta (vids ts x) (pcps ts) d x with
          | Known hits ->
            let from_table = fun next ts' out w ->
              match handle sw port d x l0 (Stdlib.Int.succ at_table) next
                      (written w meta) ts' with
              | Known outs -> Known (map (app out) outs)
              | x0 -> x0
            in
            let effect_of = fun r e ->
              match e with
              | Some p ->
                let (ts', out) = p in
                (match r.r_goto with
                 | Some next ->
                   if ltb at_table next
                   then collect (from_table next ts' out)
                          (r.r_write :: r.r_writes)
                   else Refuse
                 | None -> Known (out :: []))
              | None -> Refuse
            in
            collect (fun r ->
              collect (effect_of r) (perform sw port r.r_acts ts [])) hits
          | Divide p -> Divide p
          | Refuse -> Refuse)
    else handle sw port d x l0 (Stdlib.Int.succ at_table) target0 meta ts

let half one d bit =
  let (value, mask) = Stdlib.fst d in
  (((if one then N.setbit value bit else N.clearbit value bit),
  (N.setbit mask bit)), (Stdlib.snd d))

let rec count most bits =
  (fun fO fS n -> if n=0 then fO () else fS (n-1))
    (fun _ -> 0)
    (fun most0 ->
    if N.eqb bits 0
    then 0
    else N.succ (count most0 ((land) bits (N.pred bits))))
    most

let dividing patterns d p =
  let open_bits = fun q -> N.ldiff (Stdlib.snd q) (Stdlib.snd (Stdlib.fst d))
  in
  let fewer = fun best q ->
    match fits_class q d with
    | Unknown ->
      let n0 =
        count (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
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
          (open_bits q)
      in
      if N.ltb n0 (Stdlib.snd best) then ((open_bits q), n0) else best
    | _ -> best
  in
  N.log2
    (Stdlib.fst
      (fold_left fewer patterns ((open_bits p),
        (count (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
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
          (open_bits p)))))

type ranges = (int * int) list

let just h =
  (h, (N.succ h)) :: []

let before r l = match l with
| [] -> r :: []
| p :: more ->
  let (first, last) = p in
  if (&&) ((&&) (N.eqb (Stdlib.snd r) first) (N.leb (Stdlib.fst r) first))
       (N.leb first last)
  then ((Stdlib.fst r), last) :: more
  else r :: l

let rec together a = match a with
| [] -> (fun b -> b)
| r :: more ->
  let rec into b = match b with
  | [] -> a
  | r' :: more' ->
    if N.ltb (Stdlib.fst r) (Stdlib.fst r')
    then before r (together more b)
    else before r' (into more')
  in into

type outcome =
| Exactly of ranges
| ToOwner

let outcome_and a b =
  match a with
  | Exactly l ->
    (match l with
     | [] ->
       (match b with
        | Exactly l' -> Some (Exactly (together l l'))
        | ToOwner -> Some ToOwner)
     | _ :: _ ->
       (match b with
        | Exactly l' -> Some (Exactly (together l l'))
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
   | r :: l0 ->
     (match l0 with
      | [] ->
        (match owners with
         | [] -> true
         | w :: l1 ->
           (match l1 with
            | [] -> pattern_eqb r (w, (N.succ w))
            | _ :: _ -> false))
      | _ :: _ -> (match owners with
                   | [] -> true
                   | _ :: _ -> false)))
| ToOwner -> true

let only_owner address d owners = function
| Exactly l ->
  (match l with
   | [] -> (match owners with
            | [] -> true
            | _ :: _ -> false)
   | r :: l0 ->
     (match l0 with
      | [] ->
        (match owners with
         | [] -> false
         | w :: l1 ->
           (match l1 with
            | [] ->
              (&&)
                ((&&)
                  ((&&) (pattern_eqb r (w, (N.succ w)))
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
      | Exactly l' -> if patterns_eqb l l' then Some o else owner
      | ToOwner -> owner)
   | ToOwner -> owner)

type ranking = { rank : (int -> int); bound : int }

let value_eqb a b =
  match a with
  | Some a0 -> (match b with
                | Some b0 -> N.eqb a0 b0
                | None -> false)
  | None -> (match b with
             | Some _ -> false
             | None -> true)

let rec view_eqb a b =
  match a with
  | Bottom -> (match b with
               | Bottom -> true
               | _ -> false)
  | More -> (match b with
             | More -> true
             | _ -> false)
  | Tag (v, p, below) ->
    (match b with
     | Tag (v', p', below') ->
       (&&) ((&&) (value_eqb v v') (value_eqb p p')) (view_eqb below below')
     | _ -> false)

type entry = (view * pattern) * outcome

let rec assoc ts x = function
| [] -> None
| e :: more ->
  let (p, o) = e in
  let (seen, chosen) = p in
  if (&&) (view_eqb ts seen) (fits chosen x)
  then Some ((Stdlib.snd chosen), o)
  else assoc ts x more

type memo =
| Memo of entry list Map.tree
   * (int * ((int list * memo) * (int list * memo))) list

let blank =
  Memo (Map.Leaf, [])

let outcomes = function
| Memo (outcomes0, _) -> outcomes0

let parts = function
| Memo (_, parts0) -> parts0

let recall m c ts x =
  match Map.find (outcomes m) c with
  | Some l -> assoc ts x l
  | None -> None

let remember m c ts x k =
  let others = match Map.find (outcomes m) c with
               | Some l -> l
               | None -> [] in
  Memo
  ((Map.add (outcomes m) c (((ts, (x, (Stdlib.fst k))),
     (Stdlib.snd k)) :: others)), (parts m))

let rec parts_by bit = function
| [] -> None
| p :: more ->
  let (by_bit, both0) = p in
  if N.eqb bit by_bit then Some both0 else parts_by bit more

let rec with_parts bit both0 = function
| [] -> (bit, both0) :: []
| p :: more ->
  let (by_bit, old) = p in
  if N.eqb bit by_bit
  then (bit, both0) :: more
  else (by_bit, old) :: (with_parts bit both0 more)

let remember_parts m bit both0 =
  Memo ((outcomes m), (with_parts bit both0 (parts m)))

type tested = { destinations : pattern list;
                sources : (pattern * pattern) list; vlans : pattern list }

let with_bits_of p x bits =
  match fits_cube p (x, bits) with
  | Unknown ->
    let different0 = (land) ((lxor) x (Stdlib.fst p)) (Stdlib.snd p) in
    if N.eqb different0 0
    then (lor) bits (Stdlib.snd p)
    else N.setbit bits (N.log2 different0)
  | _ -> bits

let with_bits_of_vlan x bits p =
  with_bits_of
    ((N.shiftl (Stdlib.fst p) ((fun p->2*p) ((fun p->2*p) ((fun p->2*p)
       ((fun p->2*p) ((fun p->1+2*p) 1)))))),
    (N.shiftl (Stdlib.snd p) ((fun p->2*p) ((fun p->2*p) ((fun p->2*p)
      ((fun p->2*p) ((fun p->1+2*p) 1))))))) x bits

let telling_bits t0 d x ts =
  let with_source = fun bits test ->
    let (destination, p) = test in
    (match fits_class destination d with
     | No -> bits
     | _ -> with_bits_of p x bits)
  in
  let bits = fold_left with_source t0.sources 0 in
  if has_chosen_vlan ts
  then fold_left (with_bits_of_vlan x) t0.vlans bits
  else bits

let owners_in fab d owners =
  filter (fun h -> in_class d (fab.mac h)) owners

let parts_of fab m d owners bit =
  match parts_by bit (parts m) with
  | Some both0 -> both0
  | None ->
    (((owners_in fab (half false d bit) owners), blank),
      ((owners_in fab (half true d bit) owners), blank))

let resolved_seen fab at_switch sw c =
  ((if is_down sw (Stdlib.fst c)
    then Nowhere
    else fab.leaving at_switch (Stdlib.fst c)), (Stdlib.snd c))

let arrive fab rules c d x ts =
  let (at_switch, port) = fab.entering c in
  let with_version = fun v ->
    match handle (Stdlib.fst v) port d x (Stdlib.snd v) 0 0 0 ts with
    | Known choices ->
      Known (map (map (resolved_seen fab at_switch (Stdlib.fst v))) choices)
    | Divide p -> Divide p
    | Refuse -> Refuse
  in
  collect with_version (rules c)

let rank_on fab rk c ts =
  let of_priority = fun p -> rk.rank (fab.queue c p) in
  (match ts with
   | More ->
     (match priority More with
      | Some p -> of_priority p
      | None -> rk.bound)
   | x ->
     (match priority x with
      | Some p -> of_priority p
      | None -> fold_right N.max 0 (map of_priority priorities)))

let on_channel loose ts =
  if loose then forget ts else ts

let rec follow_all delivery loose fab rk go from m = function
| [] -> Some (m, (0, (Exactly [])))
| o :: more ->
  let (t0, ts) = o in
  (match t0 with
   | ToHost h ->
     if delivery
     then (match ts with
           | Bottom ->
             (match follow_all delivery loose fab rk go from m more with
              | Some p ->
                let (m0, k) = p in
                let (bits, o0) = k in
                (match o0 with
                 | Exactly l ->
                   Some (m0, (bits, (Exactly (together (just h) l))))
                 | ToOwner -> None)
              | None -> None)
           | _ -> None)
     else follow_all delivery loose fab rk go from m more
   | ToChannel c ->
     (match priority ts with
      | Some p ->
        let next = rk.rank (fab.queue c p) in
        if (&&) ((&&) (N.ltb from next) (N.leb next rk.bound))
             (not ((&&) delivery (fab.may_fail c)))
        then (match go m c (on_channel loose ts) with
              | Some p0 ->
                let (m0, k) = p0 in
                let (bits, o0) = k in
                (match follow_all delivery loose fab rk go from m0 more with
                 | Some p1 ->
                   let (m1, k0) = p1 in
                   let (bits', o') = k0 in
                   (match outcome_and o0 o' with
                    | Some o1 -> Some (m1, (((lor) bits bits'), o1))
                    | None -> None)
                 | None -> None)
              | None -> None)
        else None
      | None -> None)
   | Nowhere -> follow_all delivery loose fab rk go from m more)

let rec follow_each delivery loose fab rk go from d owners m = function
| [] -> None
| outs :: more ->
  (match more with
   | [] -> follow_all delivery loose fab rk go from m outs
   | _ :: _ ->
     (match follow_all delivery loose fab rk go from m outs with
      | Some p ->
        let (m0, k) = p in
        let (bits, o) = k in
        (match follow_each delivery loose fab rk go from d owners m0 more with
         | Some p0 ->
           let (m1, k0) = p0 in
           let (bits', o') = k0 in
           (match join fab.mac d d owners owners o o' with
            | Some o0 -> Some (m1, (((lor) bits bits'), o0))
            | None -> None)
         | None -> None)
      | None -> None))

let rec follow delivery loose fab rk rules tests fuel d owners x m c ts =
  match recall m c ts x with
  | Some k -> Some (m, k)
  | None ->
    ((fun fO fS n -> if n=0 then fO () else fS (n-1))
       (fun _ -> None)
       (fun fuel0 ->
       let bits = telling_bits (tests c) d x ts in
       (match arrive fab rules c d (x, bits) ts with
        | Known choices ->
          (match follow_each delivery loose fab rk
                   (follow delivery loose fab rk rules tests fuel0 d owners x)
                   (rank_on fab rk c ts) d owners m choices with
           | Some p ->
             let (m0, k) = p in
             let (bits', o) = k in
             let k0 = (((lor) bits bits'), o) in
             Some ((remember m0 c ts x k0), k0)
           | None -> None)
        | Divide p ->
          let bit = dividing (tests c).destinations d p in
          let (zero, one) = parts_of fab m d owners bit in
          let go = fun value part0 ->
            follow delivery loose fab rk rules tests fuel0 (half value d bit)
              (Stdlib.fst part0) x (Stdlib.snd part0) c ts
          in
          (match go false zero with
           | Some p0 ->
             let (m0, k) = p0 in
             let (bits0, o) = k in
             (match go true one with
              | Some p1 ->
                let (m1, k0) = p1 in
                let (bits', o') = k0 in
                (match join fab.mac (half false d bit) (half true d bit)
                         (Stdlib.fst zero) (Stdlib.fst one) o o' with
                 | Some o0 ->
                   let k1 = (((lor) bits0 bits'), o0) in
                   let m2 =
                     remember_parts m bit (((Stdlib.fst zero), m0),
                       ((Stdlib.fst one), m1))
                   in
                   Some ((remember m2 c ts x k1), k1)
                 | None -> None)
              | None -> None)
           | None -> None)
        | Refuse -> None))
       fuel)

module NOrder =
 struct
  type t = int

  let leb =
    N.leb
 end

module NSort = Sort(NOrder)

let receives fab everybody d owners h o =
  if in_class d fab.broadcast
  then (match owners with
        | [] ->
          (match o with
           | Exactly l -> patterns_eqb (together (just h) l) everybody
           | ToOwner -> false)
        | _ :: _ -> false)
  else (match o with
        | Exactly _ -> to_owner (filter (fun r -> not (N.eqb r h)) owners) o
        | ToOwner -> true)

let rec from_one delivery fab rk rules tests fuel fuel' everybody h d owners m =
  let c = fab.from_host h in
  (match arrive fab rules c d (exactly (fab.mac h)) Bottom with
   | Known choices ->
     (match follow_each delivery false fab rk
              (follow delivery false fab rk rules tests fuel d owners
                (fab.mac h)) (rank_on fab rk c Bottom) d owners m choices with
      | Some p ->
        let (m0, k) = p in
        let (_, o) = k in
        if (||) (not delivery) (receives fab everybody d owners h o)
        then Some m0
        else None
      | None -> None)
   | Divide p ->
     ((fun fO fS n -> if n=0 then fO () else fS (n-1))
        (fun _ -> None)
        (fun fuel'0 ->
        let bit = dividing (tests c).destinations d p in
        let (zero, one) = parts_of fab m d owners bit in
        let go = fun value part0 ->
          from_one delivery fab rk rules tests fuel fuel'0 everybody h
            (half value d bit) (Stdlib.fst part0) (Stdlib.snd part0)
        in
        (match go false zero with
         | Some m0 ->
           (match go true one with
            | Some m1 ->
              Some
                (remember_parts m bit (((Stdlib.fst zero), m0),
                  ((Stdlib.fst one), m1)))
            | None -> None)
         | None -> None))
        fuel')
   | Refuse -> None)

let rec from_hosts delivery fab rk rules tests fuel everybody d owners m = function
| [] -> true
| h :: more ->
  (match from_one delivery fab rk rules tests fuel fuel everybody h d owners m with
   | Some m0 ->
     from_hosts delivery fab rk rules tests fuel everybody d owners m0 more
   | None -> false)

let check_class delivery fab rk rules tests fuel everybody d =
  from_hosts delivery fab rk rules tests fuel everybody d
    (owners_in fab d fab.hosts) blank fab.hosts

let drops r =
  match r.r_acts with
  | [] -> (match r.r_goto with
           | Some _ -> false
           | None -> true)
  | _ :: _ -> false

let rec passing t0 v p x =
  match t0 with
  | [] -> None
  | level :: lower ->
    let fit = fun r -> matches_class r 0 v p ((0, 0), []) x in
    let may_pass = fun r -> match fit r with
                            | No -> false
                            | _ -> not (drops r)
    in
    (match find may_pass level with
     | Some r -> Some r
     | None ->
       if existsb (fun r ->
            match fit r with
            | Yes -> not r.r_more
            | _ -> false) level
       then None
       else passing lower v p x)

let rec first_passing l v p x =
  match l with
  | [] -> None
  | h :: more ->
    let (_, tables0) = h in
    (match passing (hd [] tables0) v p x with
     | Some r -> Some r
     | None -> first_passing more v p x)

let side one x bits =
  Stdlib.fst (half one (x, []) (N.log2 bits))

let rec admitted rules fuel' c ts x =
  match first_passing (rules c) (vids ts x) (pcps ts) x with
  | Some r ->
    let bits = with_bits_of r.r_src (Stdlib.fst x) (Stdlib.snd x) in
    let bits0 =
      if has_chosen_vlan ts
      then with_bits_of_vlan (Stdlib.fst x) bits r.r_vid
      else bits
    in
    let more = N.ldiff bits0 (Stdlib.snd x) in
    ((fun fO fS n -> if n=0 then fO () else fS (n-1))
       (fun _ -> x :: [])
       (fun fuel'0 ->
       if N.eqb more 0
       then x :: []
       else app (admitted rules fuel'0 c ts (side false x more))
              (admitted rules fuel'0 c ts (side true x more)))
       fuel')
  | None -> []

let first_views tag =
  Bottom :: (if tag then (Tag (None, None, More)) :: [] else [])

let first_cube forge fab h ts =
  let x = if forge then (0, 0) else exactly (fab.mac h) in
  if has_chosen_vlan ts
  then ((N.setbit (Stdlib.fst x) ((fun p->2*p) ((fun p->2*p) ((fun p->1+2*p)
          ((fun p->1+2*p) ((fun p->1+2*p) 1)))))),
         (N.setbit (Stdlib.snd x) ((fun p->2*p) ((fun p->2*p) ((fun p->1+2*p)
           ((fun p->1+2*p) ((fun p->1+2*p) 1)))))))
  else x

let starts forge tag fab rules fuel =
  let of_host = fun h ->
    let c = fab.from_host h in
    let of_view = fun ts ->
      map (fun x -> ((c, ts), x))
        (admitted rules fuel c ts (first_cube forge fab h ts))
    in
    flat_map of_view (first_views tag)
  in
  flat_map of_host fab.hosts

let rec from_cube fab rk rules tests fuel fuel' d owners c ts x m =
  match follow false true fab rk rules tests fuel d owners (Stdlib.fst x) m c
          ts with
  | Some p ->
    let (m0, k) = p in
    let (bits, _) = k in
    let more = N.ldiff bits (Stdlib.snd x) in
    if N.eqb more 0
    then Some m0
    else ((fun fO fS n -> if n=0 then fO () else fS (n-1))
            (fun _ -> None)
            (fun fuel'0 ->
            match from_cube fab rk rules tests fuel fuel'0 d owners c ts
                    (side false x more) m0 with
            | Some m1 ->
              from_cube fab rk rules tests fuel fuel'0 d owners c ts
                (side true x more) m1
            | None -> None)
            fuel')
  | None -> None

let rec from_views fab rk rules tests fuel d owners c x l m =
  match l with
  | [] -> Some m
  | ts :: more ->
    (match from_cube fab rk rules tests fuel fuel d owners c ts x m with
     | Some m0 -> from_views fab rk rules tests fuel d owners c x more m0
     | None -> None)

let with_each_priority ts = match ts with
| Tag (v, p, below) ->
  (match p with
   | Some _ -> ts :: []
   | None -> map (fun p0 -> Tag (v, (Some p0), below)) priorities)
| _ -> ts :: []

let from_start fab rk rules tests fuel d owners one m =
  let (p, x) = one in
  let (c, ts) = p in
  (match from_cube fab rk rules tests fuel fuel d owners c ts x m with
   | Some m0 -> Some m0
   | None ->
     from_views fab rk rules tests fuel d owners c x (with_each_priority ts) m)

let rec from_starts fab rk rules tests fuel d owners l m =
  match l with
  | [] -> true
  | one :: more ->
    (match from_start fab rk rules tests fuel d owners one m with
     | Some m0 -> from_starts fab rk rules tests fuel d owners more m0
     | None -> false)

let check_any_class fab rk rules tests fuel l d =
  from_starts fab rk rules tests fuel d (owners_in fab d fab.hosts) l blank

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
       let side0 = fun one p ->
         (||) (not (N.testbit (Stdlib.snd p) bit))
           (eqb0 (N.testbit (Stdlib.fst p) bit) one)
       in
       (&&)
         (divided fuel0 bits (N.setbit decided bit)
           (filter (side0 false) cubes))
         (divided fuel0 bits (N.setbit decided bit)
           (filter (side0 true) cubes)))
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

let tests_some p =
  not (N.eqb (Stdlib.snd p) 0)

let rec different = function
| [] -> []
| p :: more ->
  let others = different more in
  if existsb (pattern_eqb p) others then others else p :: others

let tested_by l =
  let rules = concat (concat (flat_map Stdlib.snd l)) in
  { destinations = (filter tests_some (map (fun r -> r.r_dst) rules));
  sources =
  (filter (fun test -> tests_some (Stdlib.snd test))
    (map (fun r -> (r.r_dst, r.r_src)) rules)); vlans =
  (different (filter tests_some (map (fun r -> r.r_vid) rules))) }

let prepare f channels =
  fold_left (fun m c -> Map.add m c (f c)) channels Map.Leaf

let prepared f ready c =
  match Map.find ready c with
  | Some x -> x
  | None -> f c

let rec ascending = function
| [] -> true
| x :: more ->
  (match more with
   | [] -> true
   | y :: _ -> (&&) (N.ltb x y) (ascending more))

let with_rules fab channels check0 =
  let rules = prepared (tables_of fab) (prepare (tables_of fab) channels) in
  let tests_of = fun c -> tested_by (rules c) in
  check0 rules (prepared tests_of (prepare tests_of channels))

let have_48_bits fab =
  forallb (fun h -> N.leb (fab.mac h) address_bits) fab.hosts

let check delivery fab rk fuel channels classes =
  with_rules fab channels (fun rules tests ->
    let everybody = NSort.sort fab.hosts in
    let all = fold_right (fun h -> together (just h)) [] everybody in
    (&&) ((&&) (have_48_bits fab) (ascending everybody))
      (forallb (check_class delivery fab rk rules tests fuel all) classes))

let are_all classes =
  (&&)
    ((&&)
      (forallb (fun c -> N.leb (Stdlib.snd (Stdlib.fst c)) address_bits)
        classes) (exceptions_follow classes))
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
      (map Stdlib.fst classes))

let check_all delivery fab rk fuel channels classes =
  (&&) (are_all classes) (check delivery fab rk fuel channels classes)

let check_any forge tag fab rk fuel channels classes =
  with_rules fab channels (fun rules tests ->
    let l = starts forge tag fab rules fuel in
    (&&)
      ((&&) (have_48_bits fab)
        (forallb (fun h ->
          match rules (fab.from_host h) with
          | [] -> false
          | _ :: _ -> true) fab.hosts))
      (forallb (check_any_class fab rk rules tests fuel l) classes))

let check_all_any forge tag fab rk fuel channels classes =
  (&&) (are_all classes) (check_any forge tag fab rk fuel channels classes)
