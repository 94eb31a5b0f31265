// slurm-enlist: makes hosts outside of Kubernetes nodes of a Slurm cluster.
int main() { return 0; }
