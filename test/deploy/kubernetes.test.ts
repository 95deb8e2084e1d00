import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { loadConfig, readConfigFile } from '../../src/config/load.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { needs, run } from '../support/tools.ts'

const ROOT = join(import.meta.dirname, '../..')
const BASE = join(ROOT, 'deploy/kubernetes')
const read = (name: string) => parse(readFileSync(join(BASE, name), 'utf8'))

const kustomization = read('kustomization.yaml')
const resources: readonly string[] = kustomization.resources
const { spec: pod } = read('deployment.yaml').spec.template
const [sidecar] = pod.initContainers

interface Manifest {
  readonly apiVersion: string
  readonly kind: string
}

/** Compiles manifests as values of the types that are generated from Kubernetes' OpenAPI description; returns the errors. */
async function typeErrors(manifests: readonly Manifest[]): Promise<string> {
  const folder = temporaryDirectory()
  const modules = join(ROOT, 'node_modules/kubernetes-types')
  const values = manifests.map((manifest, i) => {
    const group = manifest.apiVersion === 'v1' ? 'core/v1' : manifest.apiVersion.replace('.k8s.io/', '/')
    const file = join(modules, `${group}.d.ts`)
    return `export const value${i}: import(${JSON.stringify(file)}).${manifest.kind} = ${JSON.stringify(manifest)}\n`
  })
  writeFileSync(join(folder, 'manifests.ts'), values.join(''))
  const flags = [
    '--noEmit',
    '--strict',
    '--exactOptionalPropertyTypes',
    '--types',
    '',
    '--module',
    'nodenext',
  ]
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc')
  const { stdout } = await run(process.execPath, [tsc, ...flags, 'manifests.ts'], { cwd: folder })
  return stdout
}

const manifests: readonly Manifest[] = resources.map(read)

test('H124 the base lists every manifest, and each has the fields of the Kubernetes API and no others', async () => {
  const others = ['kustomization.yaml', 'postern.yaml']
  const present = readdirSync(BASE).filter((name) => name.endsWith('.yaml') && !others.includes(name))
  expect(resources.toSorted()).toEqual(present.toSorted())
  expect(await typeErrors(manifests)).toBe('')
})

test('a mistake in a manifest does not compile', async () => {
  const mistakes = [
    ['deployment.yaml', 'periodSeconds: 5', 'periodSecond: 5', 'periodSecond'],
    ['deployment.yaml', 'containerPort: 8443', 'containerPort: https', 'number'],
    ['network-policy.yaml', 'podSelector:', 'podSelectors:', 'podSelectors'],
    ['service.yaml', 'targetPort: https', 'port_name: https', 'port_name'],
  ] as const
  const mistaken = mistakes.map(([file, right, wrong]) => {
    const text = readFileSync(join(BASE, file), 'utf8')
    expect(text).toContain(right)
    return parse(text.replace(right, wrong))
  })
  const errors = (await typeErrors(mistaken)).split(/^(?=manifests\.ts\()/m)
  for (const [i, [, , , message]] of mistakes.entries()) {
    const own = errors.filter((error) => error.startsWith(`manifests.ts(${i + 1},`))
    expect(own.join('')).toContain(message)
  }
})

test('H124 kustomize builds the base with the password that the operator makes, and needs it', async () => {
  needs('kubectl')
  const folder = join(temporaryDirectory(), 'base')
  cpSync(BASE, folder, { recursive: true, filter: (source) => source !== join(BASE, 'password') })
  const build = () => run('kubectl', ['kustomize', folder], { env: { ...process.env, HOME: folder } })
  const without = await build()
  expect([without.code, without.stderr]).toEqual([1, expect.stringContaining('password')])
  writeFileSync(join(folder, 'password'), '$argon2id$\n')
  const built = await build()
  expect([built.code, built.stderr]).toEqual([0, ''])
  const documents = parseAllDocuments(built.stdout).map((document) => document.toJS())
  expect(documents.map(({ kind }) => kind).toSorted()).toEqual([
    'ConfigMap',
    'Deployment',
    'NetworkPolicy',
    'PersistentVolumeClaim',
    'Secret',
    'Service',
  ])
  expect(await typeErrors(documents)).toBe('')
  const images = built.stdout.match(/image: .*/g)
  expect(images).toEqual(Array(2).fill(`image: registry.example/postern:${kustomization.images[0].newTag}`))
})

test('the version of the image and its label is that of the package', () => {
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  expect(kustomization.images).toMatchObject([{ name: 'postern', newTag: version }])
  const dockerfile = readFileSync(join(ROOT, 'deploy/Dockerfile'), 'utf8')
  expect(dockerfile).toContain(`org.opencontainers.image.version="${version}"`)
})

test('H124 Postern is a native sidecar under the restricted pod security standard', () => {
  expect(sidecar).toMatchObject({ name: 'postern', restartPolicy: 'Always' })
  expect(pod).toMatchObject({
    automountServiceAccountToken: false,
    securityContext: { runAsNonRoot: true, fsGroup: 1000, seccompProfile: { type: 'RuntimeDefault' } },
  })
  for (const container of [sidecar, ...pod.containers]) {
    expect(container.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    })
    expect(Object.keys(container.resources.requests)).toEqual(['cpu', 'memory'])
    expect(Object.keys(container.resources.limits)).toEqual(['memory'])
  }
})

test('H124 names, labels and ports of the manifests and of the configuration agree', () => {
  const file = readConfigFile(join(BASE, 'postern.yaml'))
  const { listen, admin, password, stateDir, upstream } = loadConfig({ file, env: {}, sets: [] })
  const ports: readonly { readonly name: string; readonly containerPort: number }[] = sidecar.ports
  expect(ports).toEqual([
    { name: 'https', containerPort: listen.address.kind === 'tcp' ? listen.address.port : 0 },
    {
      name: 'metrics',
      containerPort: admin.address !== 'off' && admin.address.kind === 'tcp' ? admin.address.port : 0,
    },
  ])
  const [policy, service] = [read('network-policy.yaml').spec, read('service.yaml').spec]
  const { labels } = read('deployment.yaml').spec.template.metadata
  expect(read('deployment.yaml').spec.selector.matchLabels).toEqual(labels)
  expect(policy.podSelector.matchLabels).toEqual(labels)
  expect(service.selector).toEqual(labels)
  const named = [
    ...service.ports.map(({ targetPort }: { targetPort: string }) => targetPort),
    ...policy.ingress.flatMap((rule: { ports: { port: string }[] }) => rule.ports.map(({ port }) => port)),
    ...['startupProbe', 'livenessProbe', 'readinessProbe'].map((probe) => sidecar[probe].httpGet.port),
  ]
  expect(new Set(named)).toEqual(new Set(ports.map(({ name }) => name)))

  const mounts: readonly { readonly name: string; readonly mountPath: string }[] = sidecar.volumeMounts
  expect(mounts.map(({ name }) => name)).toEqual(pod.volumes.map(({ name }: { name: string }) => name))
  expect([password, stateDir]).toEqual([{ file: `${mounts[0]?.mountPath}/password` }, mounts[1]?.mountPath])
  const [{ projected }, { persistentVolumeClaim }] = pod.volumes
  expect(projected.sources).toEqual([
    { configMap: { name: kustomization.configMapGenerator[0].name } },
    { secret: { name: kustomization.secretGenerator[0].name } },
  ])
  expect(persistentVolumeClaim.claimName).toBe(read('state.yaml').metadata.name)
  expect(pod.containers[0].args).toContain(new URL(upstream.url.origin).host)
})
