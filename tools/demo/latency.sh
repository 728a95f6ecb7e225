# Part of tools/demo.sh (--latency-only): finds the convolutions of a ResNet-18, searches for cheaper operators, puts
# the fastest one in, compiles both networks and compares them.

model=$root/test/Networks/Sites/Inputs/resnet18_224.mlir
space=conv2d
# What was promised for a minute is not required of a shorter search.
wanted=20 rounds=3 runs=7
if ((seconds < 60)); then wanted=1 rounds=2 runs=2; fi

step "the layers of ResNet-18 at 224x224"
kas-opt "$model" -kas-extract -o "$out/sites.mlir"
report sites "$space"

step "searching $seconds s for operators with at most half of the FLOPs (seed $seed, $(nproc) threads)"
options="space=@$space seed=$seed seconds=$seconds evaluations=1000000 threads=$(nproc)"
timed search search "$out/sites.mlir" "$options evaluators=flops,params,latency"
report operators "$space" "$wanted"

step "putting the fastest one in"
kas-opt "$out/found.mlir" -kas-substitute="operator=@${space}_0 space=@$space" -o "$out/changed.mlir"
report substituted "$space"

step "compiling and timing both networks, in turn"
for ((round = 0; round < rounds; round++)); do
  for network in original changed; do
    file=$model
    [[ $network == original ]] || file=$out/changed.mlir
    kas-run "$file" --function=forward --args="$seed" --time --runs="$runs" --json --cache="$out/cache" \
      --output="$out/$network.npy" >>"$out/$network.jsonl"
  done
done
step "done"
report table "$space"
