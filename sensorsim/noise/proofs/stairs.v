(* ---- The draw: y = clamp(x - one/2 + z, -limit, limit) with the noise z = stair*A + U,
   A a stair picked by its count, U uniform on -stair/2 ... stair - stair/2 - 1. *)
Definition output : Type := Z.
Definition valid (y : output) : Prop := - limit <= y <= limit.
Definition entry (i : Z) : Z := nth (Z.to_nat (i + top)) counts 0.
Definition stair_of (z : Z) : Z := (z + stair / 2) / stair.
Definition clamp (a : Z) : Z := Z.max 0 (Z.min stair a).
(* The noise values that are clamped, summed over the stairs from i upwards: `share` of a stair's first value *)
Fixpoint tail (share : Z -> Z) (i : Z) (c : list Z) : Z :=
  match c with [] => 0 | a :: rest => a * clamp (share (stair * i - stair / 2)) + tail share (i + 1) rest end.
Definition words (x : Z) (y : output) : Z :=
  if y =? limit then tail (fun first => first + stair - (limit - x + one / 2)) (- top) counts
  else if y =? - limit then tail (fun first => - limit - x + one / 2 - first + 1) (- top) counts
  else entry (stair_of (y - x + one / 2)).

(* ---- Facts of this table, by computation *)
Definition reach : Z := one / stair.
Definition lowest : Z := stair_of (1 - limit - one + one / 2).
Definition highest : Z := stair_of (limit - 1 + one / 2).
Definition inside : list Z := firstn (Z.to_nat (highest - lowest + 1)) (skipn (Z.to_nat (lowest + top)) counts).
Definition close (a b : Z) : bool := (denominator * a <=? numerator * b) && (denominator * b <=? numerator * a).
Fixpoint windows (l : list Z) : bool :=
  match l with [] => true | a :: rest => close a a && forallb (close a) (firstn (Z.to_nat reach) rest) && windows rest end.

Lemma inside_windows : windows inside = true. Proof. vm_compute. reflexivity. Qed.
Lemma counts_nonnegative : Forall (Z.le 0) counts.
Proof. apply Forall_forall. intros a H. apply Z.leb_le. revert a H. apply forallb_forall. vm_compute. reflexivity. Qed.
Lemma lowest_inside : 0 <= lowest + top. Proof. vm_compute. discriminate. Qed.
Lemma highest_inside : highest + top < Z.of_nat (length counts). Proof. vm_compute. reflexivity. Qed.
Lemma whole_stairs : one = reach * stair. Proof. vm_compute. reflexivity. Qed.
Lemma ends_differ : 0 < limit. Proof. vm_compute. reflexivity. Qed.
Lemma stair_positive : 0 < stair. Proof. vm_compute. reflexivity. Qed.
Lemma upper_end : denominator * words one limit <= numerator * words 0 limit. Proof. vm_compute. discriminate. Qed.
Lemma lower_end : denominator * words 0 (- limit) <= numerator * words one (- limit). Proof. vm_compute. discriminate. Qed.
Lemma denominator_positive : 0 < denominator. Proof. reflexivity. Qed.
Lemma numerator_positive : 0 < numerator. Proof. reflexivity. Qed.
Opaque counts top one stair limit numerator denominator reach lowest highest inside close.

(* ---- Any two inputs: inside the limits by windows of the counts, at the limits by their two extreme inputs *)
Lemma windows_close : forall l i d, windows l = true -> (i + d < length l)%nat -> (d <= Z.to_nat reach)%nat ->
  close (nth i l 0) (nth (i + d) l 0) = true.
Proof.
  induction l as [|a l IH]; intros i d H Hl Hd; simpl in Hl; [lia|].
  simpl in H. apply andb_prop in H. destruct H as [H F]. apply andb_prop in H. destruct H as [H F0].
  destruct i as [|i]; simpl.
  - destruct d as [|d]; simpl; [exact H|].
    rewrite forallb_forall in F0. apply F0.
    replace (nth d l 0) with (nth d (firstn (Z.to_nat reach) l) 0).
    + apply nth_In. rewrite firstn_length. lia.
    + rewrite <- (firstn_skipn (Z.to_nat reach) l) at 2. rewrite app_nth1; [reflexivity|rewrite firstn_length; lia].
  - apply IH; try assumption; lia.
Qed.

Lemma tail_monotone : forall c f g i, Forall (Z.le 0) c -> (forall n, f n <= g n) -> 0 <= tail f i c <= tail g i c.
Proof.
  induction c as [|a c IH]; intros f g i H Hfg; simpl; [lia|].
  inversion H; subst. specialize (IH f g (i + 1) ltac:(assumption) Hfg).
  specialize (Hfg (stair * i - stair / 2)). pose proof stair_positive.
  assert (0 <= clamp (f (stair * i - stair / 2)) <= clamp (g (stair * i - stair / 2))) by (unfold clamp; lia).
  nia.
Qed.

Lemma words_nonnegative : forall x y, valid y -> 0 <= x <= one -> 0 <= words x y.
Proof.
  intros x y _ _. unfold words. destruct (y =? limit); [|destruct (y =? - limit)].
  1, 2: apply (tail_monotone counts _ _ (- top) counts_nonnegative (fun n => Z.le_refl _)).
  unfold entry. destruct (Nat.lt_ge_cases (Z.to_nat (stair_of (y - x + one / 2) + top)) (length counts)) as [L|L].
  - pose proof counts_nonnegative as H. rewrite Forall_forall in H. apply H. apply nth_In. exact L.
  - rewrite nth_overflow by exact L. lia.
Qed.

Lemma stair_monotone : forall a b, a <= b -> stair_of a <= stair_of b.
Proof. intros. unfold stair_of. apply Z.div_le_mono; [exact stair_positive|lia]. Qed.

Lemma stair_shift : forall a b, a <= b <= a + one -> stair_of a <= stair_of b <= stair_of a + reach.
Proof.
  intros a b H. split; [apply stair_monotone; lia|].
  replace (stair_of a + reach) with (stair_of (a + one)); [apply stair_monotone; lia|].
  unfold stair_of. rewrite whole_stairs. replace (a + reach * stair + stair / 2) with (a + stair / 2 + reach * stair) by ring.
  apply Z.div_add. pose proof stair_positive. lia.
Qed.

Lemma nth_skipn : forall (l : list Z) k j, nth j (skipn k l) 0 = nth (k + j) l 0.
Proof. induction l as [|a l IH]; intros [|k] j; simpl; try reflexivity; [destruct j; reflexivity|apply IH]. Qed.

Lemma nth_firstn : forall (l : list Z) n j, (j < n)%nat -> nth j (firstn n l) 0 = nth j l 0.
Proof. induction l as [|a l IH]; intros [|n] [|j] H; simpl; try reflexivity; try lia. apply IH. lia. Qed.

Lemma inside_entry : forall i, lowest <= i <= highest -> entry i = nth (Z.to_nat (i - lowest)) inside 0.
Proof.
  intros i H. pose proof lowest_inside. Transparent inside. unfold entry, inside. Opaque inside.
  rewrite nth_firstn by lia. rewrite nth_skipn. f_equal. lia.
Qed.

Lemma inside_close : forall i j, lowest <= i -> i <= j -> j <= highest -> j <= i + reach -> close (entry i) (entry j) = true.
Proof.
  intros i j A B C D. pose proof lowest_inside. pose proof highest_inside.
  rewrite !inside_entry by lia.
  replace (Z.to_nat (j - lowest)) with (Z.to_nat (i - lowest) + Z.to_nat (j - i))%nat by lia.
  apply windows_close; [exact inside_windows| |lia].
  Transparent inside. unfold inside. Opaque inside. rewrite firstn_length, skipn_length. lia.
Qed.

Theorem likelihood_ratio : forall x y s, valid s -> 0 <= x <= one -> 0 <= y <= one ->
  denominator * words x s <= numerator * words y s.
Proof.
  intros x y s Hs Hx Hy. pose proof denominator_positive. pose proof numerator_positive. pose proof ends_differ.
  unfold valid in Hs. pose proof upper_end as U. pose proof lower_end as L.
  unfold words in *. rewrite Z.eqb_refl in U. rewrite Z.eqb_refl in L.
  replace (- limit =? limit) with false in L by (symmetry; apply Z.eqb_neq; lia).
  destruct (s =? limit) eqn:E1; [|destruct (s =? - limit) eqn:E2].
  - pose proof (tail_monotone counts (fun first => first + stair - (limit - x + one / 2))
      (fun first => first + stair - (limit - one + one / 2)) (- top) counts_nonnegative ltac:(intros; cbv beta; lia)).
    pose proof (tail_monotone counts (fun first => first + stair - (limit - 0 + one / 2))
      (fun first => first + stair - (limit - y + one / 2)) (- top) counts_nonnegative ltac:(intros; cbv beta; lia)).
    nia.
  - pose proof (tail_monotone counts (fun first => - limit - x + one / 2 - first + 1)
      (fun first => - limit - 0 + one / 2 - first + 1) (- top) counts_nonnegative ltac:(intros; cbv beta; lia)).
    pose proof (tail_monotone counts (fun first => - limit - one + one / 2 - first + 1)
      (fun first => - limit - y + one / 2 - first + 1) (- top) counts_nonnegative ltac:(intros; cbv beta; lia)).
    nia.
  - apply Z.eqb_neq in E1. apply Z.eqb_neq in E2.
    set (i := stair_of (s - x + one / 2)). set (j := stair_of (s - y + one / 2)).
    assert (B : forall w, 0 <= w <= one -> lowest <= stair_of (s - w + one / 2) <= highest).
    { intros w Hw. Transparent lowest highest. unfold lowest, highest. Opaque lowest highest.
      split; apply stair_monotone; lia. }
    pose proof (B x Hx) as Bx. pose proof (B y Hy) as By. fold i in Bx. fold j in By.
    assert (C : close (entry i) (entry j) = true \/ close (entry j) (entry i) = true).
    { destruct (Z.le_ge_cases x y).
      - right. pose proof (stair_shift (s - y + one / 2) (s - x + one / 2) ltac:(lia)) as S. fold i j in S.
        apply inside_close; lia.
      - left. pose proof (stair_shift (s - x + one / 2) (s - y + one / 2) ltac:(lia)) as S. fold i j in S.
        apply inside_close; lia. }
    Transparent close. unfold close in C. Opaque close. rewrite !Bool.andb_true_iff, !Z.leb_le in C. lia.
Qed.
