import { chmodSync, chownSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { SOURCE } from '../build/release-key.ts'
import { scan } from '../build/trivy.ts'
import { clientOf } from '../process/serve.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { STOPPED_BY_TEST } from '../support/processes.ts'
import { unusedPort } from '../support/raw.ts'
import { PASSWORD } from '../support/sidecar.ts'
import { isInstalled, needs, needsRoot } from '../support/tools.ts'
import { type Container, startContainer } from './container.ts'
import { type Image, type ImageBuilder, MAKER, prepareBuilder, succeed, TIMEOUT } from './image.ts'
import { mountOf, prepareSetting, projectVolume, type Setting, startPrometheus } from './setting.ts'

const DEPLOY = join(import.meta.dirname, '../../deploy')

const TOOLS = ['buildah', 'crun', 'mmdebstrap', 'skopeo', 'unshare']

let builder: ImageBuilder | undefined
let built: Image | undefined

beforeAll(async () => {
  if (process.getuid?.() !== 0 || !TOOLS.every(isInstalled)) return
  builder = await prepareBuilder()
  built = await builder.build('postern')
}, TIMEOUT)

function image(): Image {
  needsRoot()
  for (const tool of TOOLS) needs(tool)
  return built ?? expect.fail('beforeAll builds the image')
}

/** Every file and folder of the image, without slash at the front. */
function contents(): readonly string[] {
  return readdirSync(image().files, { recursive: true }).map(String).sort()
}

const read = (file: string): Buffer => readFileSync(join(image().files, file))
const isElf = (file: string): boolean =>
  statSync(join(image().files, file)).isFile() && read(file).subarray(0, 4).equals(Buffer.from('\x7fELF'))

/** The names of the libraries that a program or library loads. */
async function neededBy(file: string): Promise<readonly string[]> {
  const dynamic = await succeed('readelf', ['--dynamic', '--wide', join(image().files, file)])
  return [...dynamic.matchAll(/\(NEEDED\).*\[(.+)\]/g)].map(([, name = '']) => name)
}

const healthCheck = (): readonly string[] => image().config.Healthcheck?.Test.slice(1) ?? []

function start({ mounts }: Setting, ...command: string[]): Container {
  return startContainer(image(), { mounts, ...(command.length > 0 ? { command } : {}) })
}

/** The output of curl in the network of a process. */
function curlIn(network: number, ...args: string[]): Promise<string> {
  return succeed('nsenter', [`--net=/proc/${network}/ns/net`, 'curl', '-skS', ...args])
}

describe('H122 the container image', () => {
  it('holds the executable, the libraries that it loads, and nothing else that runs', async () => {
    const [programs, others] = [contents().filter(isElf), contents().filter((file) => !isElf(file))]
    const needed = new Set<string>()
    for (const file of programs) for (const name of await neededBy(file)) needed.add(name)
    const libraries = programs.filter((file) => file !== 'usr/bin/postern')
    expect(libraries.map((file) => file.split('/').at(-1)).sort()).toEqual([...needed].sort())
    const files = others.filter((file) => statSync(join(image().files, file)).isFile())
    expect(files).toEqual([
      'etc/debian_version',
      'etc/group',
      'etc/nsswitch.conf',
      'etc/os-release',
      'etc/passwd',
      ...['libatomic1', 'libc6', 'libgcc-s1', 'libstdc++6'].map((name) => `usr/share/doc/${name}/copyright`),
      'usr/share/doc/postern/LICENSE',
      'usr/share/doc/postern/LICENSES.txt',
      'usr/share/doc/postern/postern.cdx.json',
      ...['libatomic1', 'libc6', 'libgcc-s1', 'libstdc++6'].map((name) => `var/lib/dpkg/status.d/${name}`),
    ])
    expect(files.filter((file) => statSync(join(image().files, file)).mode & 0o111)).toEqual([])
  })

  it('H347 has an unprivileged user by number, a volume that only this user reads, labels that say what it is, and a health check without a shell', () => {
    const { version } = JSON.parse(readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8'))
    expect(image().config).toMatchObject({
      User: '1000:1000',
      Entrypoint: ['/usr/bin/postern'],
      Cmd: ['serve'],
      Volumes: { '/var/lib/postern': {} },
      ExposedPorts: { '8443/tcp': {}, '9464/tcp': {} },
      StopSignal: 'SIGTERM',
      Healthcheck: { Test: ['CMD', '/usr/bin/postern', 'healthy'] },
    })
    expect(image().config.Labels).toEqual({
      'io.buildah.version': expect.any(String),
      'org.opencontainers.image.title': 'Postern',
      'org.opencontainers.image.description': expect.stringContaining('OAuth 2.0'),
      'org.opencontainers.image.version': version,
      'org.opencontainers.image.licenses': 'Apache-2.0',
      'org.opencontainers.image.revision': SOURCE.commit,
      'org.opencontainers.image.created': '2023-11-14T22:13:20Z',
      'org.opencontainers.image.vendor': MAKER.name,
      'org.opencontainers.image.authors': MAKER.maintainer,
      'org.opencontainers.image.url': MAKER.download,
      'org.opencontainers.image.source': MAKER.source,
      'postern.sbom': '/usr/share/doc/postern/postern.cdx.json',
    })
    const { uid, gid, mode } = statSync(join(image().files, 'var/lib/postern'))
    expect([uid, gid, mode & 0o777]).toEqual([1000, 1000, 0o700])
    const writable = contents().filter((file) => statSync(join(image().files, file)).uid !== 0)
    expect(writable).toEqual(['var/lib/postern'])
  })

  it('serves without privileges on a read-only root, and keeps tokens in its volume', async () => {
    const setting = await prepareSetting()
    const first = start(setting)
    const { public: url } = await first.waitForLog('listening')
    const client = clientOf(String(url), setting.adminUrl, 'tls', setting.state)
    const { access_token: token } = await client.grant()
    expect(await client.use(token)).toBe(200)
    const status = readFileSync(`/proc/${await first.pid()}/status`, 'utf8')
    expect(status).toMatch(/^Uid:\t1000\t1000\t1000\t1000\nGid:\t1000\t/m)
    expect(status).toMatch(/^CapEff:\t0+$/m)
    await first.signal('TERM')
    expect(await first.ended).toEqual([0, ''])

    const second = start(setting)
    const { public: again } = await second.waitForLog('listening')
    expect(await clientOf(String(again), setting.adminUrl, 'tls', setting.state).use(token)).toBe(200)
  })

  it('is healthy while the process responds, and its commands find the configuration', async () => {
    const { mounts } = await prepareSetting()
    const container = startContainer(image(), { mounts, env: STOPPED_BY_TEST })
    const test = healthCheck()
    await container.waitForLog('listening')
    expect(await container.exec(...test)).toMatchObject({ code: 0, stderr: '' })
    expect(await container.exec('/usr/bin/postern', 'status')).toMatchObject({ code: 0, stderr: '' })
    await container.signal('STOP')
    expect(await container.exec(...test)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('within 3 s'),
    })
    await container.signal('CONT')
    expect(await container.exec(...test)).toMatchObject({ code: 0 })
    expect((await container.exec('/usr/bin/postern', 'check')).stdout).toMatch(/^ok +device/m)
    expect((await container.exec('/bin/sh', '-c', 'true')).code).not.toBe(0)
  })

  it('runs the sample device alone, and is not healthy without a sidecar', async () => {
    const setting = await prepareSetting()
    const port = await unusedPort()
    const container = start(setting, 'demo', '--device', `127.0.0.1:${port}`)
    await container.output('Sample device on')
    expect((await fetch(`http://127.0.0.1:${port}/api/system`)).status).toBe(200)
    expect(await container.exec(...healthCheck())).toEqual({
      code: 1,
      stdout: '',
      stderr: `postern healthy: /healthz at ${new URL(setting.adminUrl).host}: no sidecar is running there\n`,
    })
  })

  it('H347 is built on a base by its digest, and not on another one that has its tag', async () => {
    const { base, build } = builder ?? expect.fail('beforeAll prepares the builder')
    expect(base).toMatch(/^docker\.io\/library\/debian:12-slim@sha256:[0-9a-f]{64}$/)
    expect((await build('pinned', base)).digest).toBe(image().digest)
    const other = base.replace(/.{8}$/, '00000000')
    await expect(build('other', other)).rejects.toThrow('00000000')
  })

  it("H348 has the bill of materials of the release at the place that its label names, and Debian's records of its libraries", async () => {
    const { Labels: labels = {} } = image().config
    const bom = JSON.parse(read(String(labels['postern.sbom'])).toString())
    expect(bom).toMatchObject({ bomFormat: 'CycloneDX', metadata: { supplier: { name: MAKER.name } } })
    const records = readdirSync(join(image().files, 'var/lib/dpkg/status.d')).map((name) =>
      read(`var/lib/dpkg/status.d/${name}`).toString(),
    )
    for (const record of records) {
      expect(record).toMatch(/^Status: install ok installed$/m)
      expect(record).toMatch(/^Version: \d\S+$/m)
    }
    expect(read('etc/os-release').toString()).toMatch(/^ID=debian$/m)
  })

  it('H348 shows a scanner of images what is in it', async () => {
    const folder = temporaryDirectory()
    await succeed('skopeo', ['copy', '--quiet', `oci-archive:${image().archive}`, `oci:${folder}/image`])
    const npm = ['zod', 'undici'].map((name) => ({ ecosystem: 'npm', name, fixed: '99.0.0' }) as const)
    const debian = ['glibc', 'gcc-12'].map(
      (name) => ({ ecosystem: 'debian 12', name, fixed: '99.0' }) as const,
    )
    const libraries = ['libatomic1', 'libc6', 'libgcc-s1', 'libstdc++6']
    expect(await scan('trivy image --scanners vuln --input image', folder, [...npm, ...debian])).toEqual([
      ...libraries,
      'undici',
      'zod',
    ])
  })

  it('is small, an OCI archive, and the same bytes in a second build', async () => {
    const { archive, digest, files } = image()
    const manifest = JSON.parse(await succeed('skopeo', ['inspect', '--raw', `oci-archive:${archive}`]))
    const compressed = manifest.layers.reduce((sum: number, { size }: { size: number }) => sum + size, 0)
    const whole = Number((await succeed('du', ['--apparent-size', '-sb', files])).split('\t')[0])
    process.stdout.write(`image: ${whole} bytes, ${compressed} compressed, ${digest}\n`)
    expect(manifest).toMatchObject({ schemaVersion: 2, layers: [{}] })
    expect(compressed).toBeLessThan(49e6)
    expect(whole).toBeLessThan(130e6)
    expect((await builder?.build('again'))?.digest).toBe(digest)
  })
})

describe('H123 deploy/compose.yaml', () => {
  it('starts a sample device, Postern in front of it, and a Prometheus that watches Postern', async () => {
    for (const tool of ['prometheus', 'nsenter', 'curl']) needs(tool)
    const { services } = parse(readFileSync(join(DEPLOY, 'compose.yaml'), 'utf8'))
    const site = await prepareSetting()
    const hosts = { source: site.hosts, destination: '/etc/hosts' }
    const { command } = services.device
    const device = startContainer(image(), { mounts: [hosts], command, network: 'own' })
    await device.output('Sample device on http://device:8080')
    const network = await device.pid()

    const mounts = [
      ...services.postern.volumes.map((volume: string) => mountOf(volume, site)),
      { source: join(site.etc, 'password'), destination: '/run/secrets/password' },
    ]
    const env = services.postern.environment
    const sidecar = startContainer(image(), { mounts: [hosts, ...mounts], env, network })
    await sidecar.waitForLog('listening')
    expect(await sidecar.exec(...healthCheck())).toMatchObject({ code: 0, stderr: '' })
    const curl = (...args: string[]): Promise<string> => curlIn(network, ...args)
    const api = 'https://localhost:8443'
    const form = ['-d', 'grant_type=password', '--data-urlencode', `password=${PASSWORD}`]
    const { access_token: token } = JSON.parse(await curl(`${api}/oauth/token`, ...form))
    const authorization = ['-H', `Authorization: Bearer ${token}`]
    expect(JSON.parse(await curl(`${api}/api/system`, ...authorization))).toMatchObject({
      model: 'PowerDist 8',
    })
    expect(await curl('-o', '/dev/null', '-w', '%{redirect_url}', `${api}/login`, ...authorization)).toBe(
      `${api}/login.html`,
    )

    await startPrometheus(services.prometheus.volumes, network)
    const query = (path: string): Promise<string> => curl(`http://127.0.0.1:9090/api/v1/${path}`)
    const wait = { timeout: 60_000, interval: 1_000 }
    await expect.poll(() => query('query?query=up').catch(String), wait).toMatch(/"value":\[[\d.]+,"1"\]/)
    expect(await query('query?query=postern_tokens_issued_total')).toContain('"device":"rack-3-pdu"')
    expect(await query('rules')).toMatch(/"name":"Postern\w+"/)
  })
})

describe('H124 deploy/kubernetes', () => {
  const { spec } = parse(readFileSync(join(DEPLOY, 'kubernetes/deployment.yaml'), 'utf8')).spec.template
  const [sidecar] = spec.initContainers

  it('has a sidecar that serves under the security context, the volumes and the probes of the pod', async () => {
    const { state } = await prepareSetting()
    const { runAsUser, runAsGroup, fsGroup } = spec.securityContext
    expect(`${runAsUser}:${runAsGroup}`).toBe(image().config.User)
    chownSync(state, 0, fsGroup)
    chmodSync(state, 0o2775)
    const configuration = temporaryDirectory()
    chmodSync(configuration, 0o755)
    const yaml = readFileSync(join(DEPLOY, 'kubernetes/postern.yaml'), 'utf8')
    projectVolume(configuration, { password: PASSWORD, 'postern.yaml': yaml })
    const sources: Readonly<Record<string, string>> = { configuration, state }
    const mounts = sidecar.volumeMounts.map(({ name, mountPath, readOnly }: Record<string, string>) => ({
      source: sources[String(name)],
      destination: mountPath,
      write: readOnly === undefined,
    }))
    const device = startContainer(image(), { command: spec.containers[0].args, network: 'own' })
    await device.output('Sample device on http://127.0.0.1:8080')
    const network = await device.pid()
    const container = startContainer(image(), { mounts, network })
    await container.waitForLog('listening')
    const curl = (...args: string[]): Promise<string> => curlIn(network, ...args)
    const { containerPort } = sidecar.ports.find(({ name }: Record<string, string>) => name === 'metrics')
    for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe']) {
      const url = `http://127.0.0.1:${containerPort}${sidecar[probe].httpGet.path}`
      expect([probe, await curl('-o', '/dev/null', '-w', '%{http_code}', url)]).toEqual([probe, '200'])
    }

    projectVolume(configuration, { password: 'another one', 'postern.yaml': `${yaml}realm: rack\n` })
    await container.waitForLog('configuration reloaded')
    expect(await curl('-D', '-', 'https://localhost:8443/api/system')).toContain('realm="rack"')
    const form = ['-d', 'grant_type=password', '--data-urlencode', 'password=another one']
    expect(await curl('https://localhost:8443/oauth/token', ...form)).toContain('access_token')
  })
})
