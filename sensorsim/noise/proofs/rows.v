(* ---- The draw: of steps * 2^count_bits words that differ in a used bit, `words x s` give symbol s at input x.
   The low bits round x to one of the two knots beside it, in proportion; the top bits draw by that knot's row. *)
Definition output : Type := nat.
Definition valid (s : output) : Prop := (s < symbols)%nat.
Definition entry (row : Z) (s : nat) : Z := nth s (nth (Z.to_nat row) counts []) 0.
Definition steps : Z := 2 ^ shift.
Definition one : Z := steps * (knots - 1).
Definition row_of (x : Z) : Z := x / steps.
Definition next_row (x : Z) : Z := Z.min (row_of x + 1) (knots - 1).
Definition above (x : Z) : Z := x mod steps.
Definition words (x : Z) (s : output) : Z :=
  (steps - above x) * entry (row_of x) s + above x * entry (next_row x) s.

Definition column (s : nat) : list Z := map (fun row => nth s row 0) counts.
Definition least (s : nat) : Z := fold_right Z.min (hd 0 (column s)) (column s).
Definition most (s : nat) : Z := fold_right Z.max 0 (column s).

(* ---- Facts of this table, by computation *)
Definition all_rows : list nat := seq 0 (Z.to_nat knots).
Definition row_ok (s : nat) (r : nat) : bool :=
  (least s <=? entry (Z.of_nat r) s) && (entry (Z.of_nat r) s <=? most s).
Definition column_ok (s : nat) : bool :=
  forallb (row_ok s) all_rows && (0 <? least s) && (denominator * most s <=? numerator * least s).

Lemma columns_ok : forallb column_ok (seq 0 symbols) = true.
Proof. vm_compute. reflexivity. Qed.

Lemma rows_sum : forallb (fun row => fold_right Z.add 0 row =? 2 ^ count_bits) counts = true.
Proof. vm_compute. reflexivity. Qed.

Lemma column_facts : forall s, (s < symbols)%nat ->
  0 < least s /\ denominator * most s <= numerator * least s /\
  forall r, 0 <= r < knots -> least s <= entry r s <= most s.
Proof.
  intros s Hs. pose proof columns_ok as H. rewrite forallb_forall in H.
  specialize (H s). assert (Hin : In s (seq 0 symbols)) by (apply in_seq; lia).
  specialize (H Hin). unfold column_ok in H.
  apply andb_prop in H. destruct H as [H H3]. apply andb_prop in H. destruct H as [H1 H2].
  apply Z.ltb_lt in H2. apply Z.leb_le in H3. rewrite forallb_forall in H1.
  repeat split; try assumption.
  all: intros; assert (Hr : In (Z.to_nat r) all_rows) by (apply in_seq; unfold knots in *; lia);
    specialize (H1 _ Hr); unfold row_ok in H1; rewrite Z2Nat.id in H1 by lia;
    apply andb_prop in H1; destruct H1 as [Ha Hb]; apply Z.leb_le in Ha; apply Z.leb_le in Hb; lia.
Qed.

(* ---- Any two inputs: every input is a mixture of two rows, so it lies between the least and the most of a column *)
Lemma mixture : forall x s, (s < symbols)%nat -> 0 <= x <= one ->
  steps * least s <= words x s <= steps * most s.
Proof.
  intros x s Hs Hx. destruct (column_facts s Hs) as [_ [_ H]].
  assert (Hsteps : 0 < steps) by reflexivity.
  assert (Hk : 1 < knots) by reflexivity.
  pose proof (Z.mod_pos_bound x steps Hsteps) as Hm. fold (above x) in Hm.
  assert (Hr : 0 <= row_of x < knots).
  { unfold row_of. split; [apply Z.div_pos; lia|].
    apply Z.div_lt_upper_bound; [lia|]. unfold one in Hx. nia. }
  assert (Hn : 0 <= next_row x < knots) by (unfold next_row; lia).
  pose proof (H _ Hr) as A. pose proof (H _ Hn) as B.
  unfold words. nia.
Qed.

Theorem likelihood_ratio : forall x y s, valid s -> 0 <= x <= one -> 0 <= y <= one ->
  denominator * words x s <= numerator * words y s.
Proof.
  intros x y s Hs Hx Hy. destruct (column_facts s Hs) as [Hp [Hq _]].
  pose proof (mixture x s Hs Hx). pose proof (mixture y s Hs Hy).
  assert (0 < denominator) by reflexivity. assert (0 < numerator) by reflexivity.
  assert (0 < steps) by reflexivity. nia.
Qed.

Lemma words_nonnegative : forall x s, valid s -> 0 <= x <= one -> 0 <= words x s.
Proof.
  intros x s Hs Hx. destruct (column_facts s Hs) as [Hp _]. pose proof (mixture x s Hs Hx).
  assert (0 < steps) by reflexivity. nia.
Qed.
