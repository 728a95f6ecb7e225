# Part of tools/demo.sh: searches for sequences of operators for the 3x3 layers of a network, training the network with
# each of them on Fashion-MNIST; trains the best, the dense layer and the depthwise-separable one; compares them.

inputs=$root/test/Networks/Training/Inputs
space=conv2d
threads=$(nproc)
# What trainings have in common, and what is left out where only the steps themselves are to be seen.
data=(--data=fashion-mnist --validation=5000 --split-seed=0 --augment=flip)
recipe=(--optimizer=adamw --learning-rate=4e-3 --weight-decay=0.02 --schedule=cosine:warm-up=10%)
search_size=(--limit=6000 --epochs=3) rungs=1,3 size=(--limit=12000 --epochs=6) seeds=3 rounds=5
if ((seconds < 60)); then
  search_size=(--limit=640 --epochs=1) rungs=1 size=(--limit=640 --epochs=1) seeds=2 rounds=2
fi

step "the layers of a residual network of width 32 that sees neighbours in them alone"
kas-opt "$inputs/pooled_64.mlir" -kas-extract=sequences -o "$out/layers.mlir"
# The depthwise-separable layer is a baseline of the search, too, for its page.
{ sed '/^}$/d' "$out/layers.mlir"; cat "$root/tools/demo/separable.mlir"; echo '}'; } >"$out/sites.mlir"
report sites "$space"

step "searching $seconds s for layers with at most half of the FLOPs, training each (seed $seed, $threads threads)"
# An accuracy of 0.8 points is what the dense network of half the latency loses; the layers take some 5 ms.
options="space=@${space}_sequences seed=$seed seconds=$seconds evaluations=1000000 threads=$threads rungs=$rungs top=10"
options+=" evaluators=flops,params,predicted_ms,training objective=0.006*predicted_ms-accuracy"
options+=" baselines=@separable"
options+=" database='$out/search.db' training='${data[*]} ${recipe[*]} ${search_size[*]} --test=none'"
timed search search "$out/sites.mlir" "$options"
report chosen "$space"

step "the networks: dense, depthwise-separable, and with what was found"
sed 's/@separable/@chosen/g' "$root/tools/demo/separable.mlir" >"$out/separable.mlir"
for batch in 64 1; do
  cp "$inputs/pooled_$batch.mlir" "$out/dense-$batch.mlir"
  for network in separable found; do
    report join "$out/dense-$batch.mlir" "$network" "$out/$network-$batch.tmp.mlir"
    kas-opt "$out/$network-$batch.tmp.mlir" -kas-extract -o "$out/$network-$batch.sites.mlir"
    kas-opt "$out/$network-$batch.sites.mlir" -kas-substitute="operator=@chosen space=@$space" -symbol-dce \
      -o "$out/$network-$batch.mlir"
    rm "$out/$network-$batch.tmp.mlir" "$out/$network-$batch.sites.mlir"
  done
done

step "training each with $seeds seeds that the search has not seen"
for ((i = 0; i < seeds; i++)); do
  for network in dense separable found; do
    echo "$network $((100 + i))"
  done
done >"$out/trainings"
export out
xargs -P "$threads" -L 1 bash -c '
  kas-train "$out/$0-64.mlir" --seed="$1" --json -o "$out/$0-$1.npz" "${@:2}" >"$out/$0-$1.jsonl" || exit 255
  python3 "'"$root"'/tools/demo/training_report.py" "$out" trained "$0" "$1"' \
  < <(sed "s/\$/ ${data[*]} ${recipe[*]//\//\\/} ${size[*]}/" "$out/trainings")

step "timing the networks for one image, in turn"
for ((round = 0; round < rounds; round++)); do
  for network in dense separable found; do
    kas-run "$out/$network-1.mlir" --function=forward --args="$out/$network-100.npz" --args=1 --threads=1 --time --json \
      --cache="$out/cache" >>"$out/$network.jsonl"
  done
done

if [[ -n $python ]]; then
  step "the page about the search"
  PYTHONPATH=$root/build/python "$python" -m kas.cli report "$out/search.db" -o "$out/report.html"
fi
step "done"
report table
