"""What tests of logins have in common: a pod that has ssh, and its keys."""


def client(ns, *command, **options):
    """A command in a pod that has ssh and is no login node."""
    return ns.kubectl("exec", "client", "--", *command, **options)


def have_client(ns):
    ns.kubectl("delete", "pod", "client", "--ignore-not-found")
    ns.apply("""
apiVersion: v1
kind: Pod
metadata: {name: client}
spec:
  terminationGracePeriodSeconds: 0
  containers: [{name: client, image: "local/login:${TAG}", imagePullPolicy: IfNotPresent, command: [sleep, infinity]}]
""")
    ns.kubectl("wait", "--for=condition=Ready", "pod/client", "--timeout=300s")


def made_key(ns, name):
    """The public key of a new SSH key of the client."""
    return client(ns, "bash", "-c", f"ssh-keygen -q -t ed25519 -N '' -C {name} -f /tmp/{name} && cat /tmp/{name}.pub").stdout


def ssh_command(key, user, *command, host="login"):
    """A host key that has changed is refused."""
    return ["ssh", "-i", f"/tmp/{key}", "-o", "IdentitiesOnly=yes", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o",
            "StrictHostKeyChecking=accept-new", f"{user}@{host}", *command]


def ssh(ns, key, user, *command, host="login", **options):
    return client(ns, *ssh_command(key, user, *command, host=host), **options)
