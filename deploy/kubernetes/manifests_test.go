// Package kubernetes tests the manifests of this directory. It is a module of its own, since the types of Kubernetes
// take half a minute to compile.
package kubernetes

import (
	"bytes"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// objects are the manifests that kubectl apply -k DIR would send.
type objects struct {
	job     *batchv1.Job
	service *corev1.Service
	budget  *policyv1.PodDisruptionBudget
	other   []metav1.TypeMeta
	names   map[string]bool // KIND/NAME
}

// build runs kustomize and decodes its output strictly: an unknown or repeated field is an error.
func build(t *testing.T, dir string) *objects {
	t.Helper()
	all, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatal(err)
	}
	text, err := all.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	o := &objects{names: map[string]bool{}}
	for _, doc := range bytes.Split(text, []byte("\n---\n")) {
		if err := o.decode(doc); err != nil {
			t.Fatalf("%v:\n%s", err, doc)
		}
	}
	if o.job == nil || o.service == nil || o.budget == nil {
		t.Fatalf("%s has no Job, Service or PodDisruptionBudget", dir)
	}
	return o
}

func (o *objects) decode(doc []byte) error {
	var m metav1.PartialObjectMetadata
	if err := yaml.Unmarshal(doc, &m); err != nil {
		return err
	}
	o.names[m.Kind+"/"+m.Name] = true
	var to any
	switch m.GroupVersionKind().String() {
	case "batch/v1, Kind=Job":
		o.job = &batchv1.Job{}
		to = o.job
	case "/v1, Kind=Service":
		o.service = &corev1.Service{}
		to = o.service
	case "policy/v1, Kind=PodDisruptionBudget":
		o.budget = &policyv1.PodDisruptionBudget{}
		to = o.budget
	case "/v1, Kind=ConfigMap":
		to = &corev1.ConfigMap{}
	case "/v1, Kind=PersistentVolumeClaim":
		to = &corev1.PersistentVolumeClaim{}
	default: // such as a Secret, which belongs into no tree, or a Role, which no Pod needs
		return fmt.Errorf("unexpected %s", m.GroupVersionKind())
	}
	return yaml.UnmarshalStrict(doc, to)
}

func directories(t *testing.T) []string {
	overlays, err := filepath.Glob("overlays/*")
	if err != nil || len(overlays) == 0 {
		t.Fatal("no overlays", err)
	}
	return append(overlays, "base")
}

// flag returns the value of a flag of the container's command line.
func flag(c *corev1.Container, name string) string {
	for _, a := range slices.Backward(slices.Concat(c.Command, c.Args)) {
		if v, found := strings.CutPrefix(a, "--"+name+"="); found {
			return v
		}
	}
	return ""
}

func number(t *testing.T, c *corev1.Container, name string) int32 {
	t.Helper()
	n, err := strconv.ParseInt(flag(c, name), 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return int32(n)
}

// What the manifests state in several places agrees.
func TestManifestsAgree(t *testing.T) {
	for _, dir := range directories(t) {
		t.Run(dir, func(t *testing.T) {
			o := build(t, dir)
			spec, pod := &o.job.Spec, &o.job.Spec.Template.Spec
			c := &pod.Containers[0]
			size := number(t, c, "peers") + number(t, c, "spares")
			equal(t, "completions", *spec.Completions, size)
			equal(t, "parallelism", *spec.Parallelism, size)
			equal(t, "completionMode", *spec.CompletionMode, batchv1.IndexedCompletion)
			equal(t, "minAvailable", o.budget.Spec.MinAvailable.IntVal, size-1)
			equal(t, "subdomain", pod.Subdomain, o.service.Name)
			equal(t, "clusterIP", o.service.Spec.ClusterIP, corev1.ClusterIPNone)
			equal(t, "publishNotReadyAddresses", o.service.Spec.PublishNotReadyAddresses, true)

			host, port, err := net.SplitHostPort(flag(c, "rendezvous"))
			equal(t, "--rendezvous", err, nil)
			equal(t, "host of --rendezvous", host, o.job.Name+"-0."+o.service.Name)
			equal(t, "containerPort", strconv.Itoa(int(c.Ports[0].ContainerPort)), port)
			equal(t, "port of the Service", o.service.Spec.Ports[0].Port, c.Ports[0].ContainerPort)
			equal(t, "targetPort", o.service.Spec.Ports[0].TargetPort.StrVal, c.Ports[0].Name)
			cpus := c.Resources.Limits.Cpu().Value()
			equal(t, "processors of --threads", int64(number(t, c, "threads")), cpus)

			of := labels.Set(spec.Template.Labels)
			for what, s := range map[string]*metav1.LabelSelector{
				"Service":                   {MatchLabels: o.service.Spec.Selector},
				"PodDisruptionBudget":       o.budget.Spec.Selector,
				"topologySpreadConstraints": pod.TopologySpreadConstraints[0].LabelSelector,
			} {
				selector, err := metav1.LabelSelectorAsSelector(s)
				equal(t, what, err, nil)
				equal(t, "selection of the Pods by the "+what, !selector.Empty() && selector.Matches(of), true)
			}
			checkVolumes(t, o, pod, c)
		})
	}
}

// checkVolumes checks that every mount has a volume, every volume a source that exists, and that the secret is mounted.
func checkVolumes(t *testing.T, o *objects, pod *corev1.PodSpec, c *corev1.Container) {
	t.Helper()
	var mounts, volumes []string
	for _, m := range c.VolumeMounts {
		mounts = append(mounts, m.Name)
	}
	for _, v := range pod.Volumes {
		volumes = append(volumes, v.Name)
		switch {
		case v.Secret != nil:
			equal(t, "name of the Secret in README.md", v.Secret.SecretName, "obstacle-secret")
			equal(t, "mode of the secret", *v.Secret.DefaultMode, 0o440)
		case v.ConfigMap != nil:
			equal(t, v.ConfigMap.Name, o.names["ConfigMap/"+v.ConfigMap.Name], true)
		case v.PersistentVolumeClaim != nil:
			claim := v.PersistentVolumeClaim.ClaimName
			equal(t, claim, o.names["PersistentVolumeClaim/"+claim], true)
		default:
			t.Errorf("volume %s: unexpected source", v.Name)
		}
	}
	slices.Sort(mounts)
	slices.Sort(volumes)
	equal(t, "mounts", fmt.Sprint(mounts), fmt.Sprint(volumes))
	i := slices.IndexFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == "secret" })
	equal(t, "--secret-file", flag(c, "secret-file"), c.VolumeMounts[i].MountPath+"/secret")
}

// Lost Pods are started again, and what cannot succeed ends the Job.
func TestFailures(t *testing.T) {
	for _, dir := range directories(t) {
		spec := &build(t, dir).job.Spec
		equal(t, "restartPolicy", spec.Template.Spec.RestartPolicy, corev1.RestartPolicyNever) // backoffLimitPerIndex needs it
		equal(t, "backoffLimitPerIndex", *spec.BackoffLimitPerIndex > 0, true)
		equal(t, "terminationGracePeriodSeconds", *spec.Template.Spec.TerminationGracePeriodSeconds, 30)
		equal(t, "success", *spec.SuccessPolicy.Rules[0].SucceededIndexes, "0")
		actions := map[int32]batchv1.PodFailurePolicyAction{}
		for i, r := range spec.PodFailurePolicy.Rules {
			if r.OnExitCodes == nil {
				equal(t, "the first rule is that of disruptions", i, 0)
				equal(t, "condition", r.OnPodConditions[0].Type, corev1.DisruptionTarget)
				equal(t, "action", r.Action, batchv1.PodFailurePolicyActionIgnore)
				continue
			}
			equal(t, "container", *r.OnExitCodes.ContainerName, spec.Template.Spec.Containers[0].Name)
			for _, code := range r.OnExitCodes.Values {
				actions[code] = r.Action
			}
		}
		equal(t, "bad usage or input", actions[2], batchv1.PodFailurePolicyActionFailJob)
		equal(t, "stopped", actions[3], batchv1.PodFailurePolicyActionCount)
	}
}

// A Pod has no more rights than it needs.
func TestRights(t *testing.T) {
	for _, dir := range directories(t) {
		pod := &build(t, dir).job.Spec.Template.Spec
		c := pod.Containers[0].SecurityContext
		equal(t, "service account token", *pod.AutomountServiceAccountToken, false)
		equal(t, "runAsNonRoot", *pod.SecurityContext.RunAsNonRoot, true)
		equal(t, "runAsUser", *pod.SecurityContext.RunAsUser > 0, true)
		equal(t, "fsGroup", *pod.SecurityContext.FSGroup, *pod.SecurityContext.RunAsGroup)
		equal(t, "seccompProfile", pod.SecurityContext.SeccompProfile.Type, corev1.SeccompProfileTypeRuntimeDefault)
		equal(t, "allowPrivilegeEscalation", *c.AllowPrivilegeEscalation, false)
		equal(t, "readOnlyRootFilesystem", *c.ReadOnlyRootFilesystem, true)
		equal(t, "capabilities", fmt.Sprint(c.Capabilities.Drop), "[ALL]")
	}
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}
