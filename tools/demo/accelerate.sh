# Part of tools/demo.sh: trains a residual network on Fashion-MNIST and makes it faster at its accuracy.

# What a short demo leaves out is said by accelerate.py.
size=whole
if ((seconds < 60)); then size=short; fi

step "training the network"
# All cores train it. Threads that wait let others run: on a busy machine they would take most of the time else.
OMP_WAIT_POLICY=passive PYTHONPATH=$root/build/python "$python" "$root/tools/demo/accelerate.py" train "$out" "$seed" "$size"
step "accelerating it: at most 0.5 points of accuracy, $seconds s, $(nproc) trainings at once"
PYTHONPATH=$root/build/python timed search "$python" "$root/tools/demo/accelerate.py" accelerate "$out" "$seed" "$size" "$seconds"
step "done"
PYTHONPATH=$root/build/python "$python" "$root/tools/demo/accelerate.py" show "$out"
