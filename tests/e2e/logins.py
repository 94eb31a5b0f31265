"""Code that tests of logins share: a pod with an SSH client, and its keys."""


def client(ns, *command, **options):
    """Runs a command in a pod that has an SSH client and is not a login node."""
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
    """Creates a new SSH key in the client's pod, and returns the public key."""
    return client(ns, "bash", "-c", f"ssh-keygen -q -t ed25519 -N '' -C {name} -f /tmp/{name} && cat /tmp/{name}.pub").stdout


def ssh_command(key, user, *command, host="login"):
    """Returns the ssh command. It refuses a host key that has changed."""
    return ["ssh", "-i", f"/tmp/{key}", "-o", "IdentitiesOnly=yes", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o",
            "StrictHostKeyChecking=accept-new", f"{user}@{host}", *command]


def ssh(ns, key, user, *command, host="login", **options):
    return client(ns, *ssh_command(key, user, *command, host=host), **options)
