import { copyFileSync, existsSync, mkdirSync } from 'node:fs'
import { basename, join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { makeDebianPackage } from '../../deploy/build/debian.ts'
import { VERSION } from '../../src/version.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { replaceIn, shellBlock } from '../support/pages.ts'
import { isInstalled } from '../support/tools.ts'
import { addDevice, type Operator, operatorOf, PASSWORD } from './equipment.ts'
import { bootMachine, type Machine, minimalDebian, needsMachine } from './machine.ts'
import { executableFor, PROCESSOR } from './made-once.ts'

const TOOLS = ['systemd-nspawn', 'nsenter']

const ADD = shellBlock('docs/many-devices.md', 'enable --now postern-device@boiler')
const ALONE = shellBlock('docs/many-devices.md', 'disable --now postern.service')
const LOOK = shellBlock('docs/many-devices.md', 'postern revoke --instance')
const RESTART = shellBlock('docs/many-devices.md', 'systemctl restart "$unit"')
const DELETE = shellBlock('docs/many-devices.md', 'rm -r /etc/postern/devices')
const TARGETS = shellBlock('docs/many-devices.md', 'postern-devices.yml')

let machine: Machine
let type: Operator['type']
let tokens: Readonly<Record<string, string>>

async function prepare(): Promise<void> {
  const root = await minimalDebian()
  const file = await makeDebianPackage({
    executable: await executableFor(),
    processor: PROCESSOR,
    version: VERSION,
    licences: '',
    time: 1_700_000_000,
    folder: temporaryDirectory(),
    compression: 'gzip',
  })
  copyFileSync(file, join(root, 'root', basename(file)))
  addDevice(root)
  machine = await bootMachine(root)
  ;({ type } = operatorOf(machine))
}

/** Adds a device by the commands of the page. */
const add = (name: string): Promise<string> =>
  type(
    replaceIn(replaceIn(ADD, 'http://192.0.2.11', 'http://127.0.0.1:8080'), 'boiler', name),
    `${PASSWORD}\n`,
  )

/** Requests the device of a name by its own certificate. */
const curl = (name: string, port: number, args: string, input: string): Promise<string> =>
  type(
    `curl -sS --cacert /var/lib/postern/devices/${name}/tls/cert.pem ${args.replace('PORT', String(port))}`,
    input,
  )

async function logIn(name: string, port: number): Promise<string> {
  const form = '-d grant_type=password --data-urlencode password@-'
  return JSON.parse(await curl(name, port, `-f https://localhost:PORT/oauth/token ${form}`, PASSWORD))
    .access_token
}

const use = (name: string, port: number): Promise<string> =>
  curl(
    name,
    port,
    "-w '%{http_code}' https://localhost:PORT/ -H @-",
    `Authorization: Bearer ${tokens[name]}\n`,
  )

/** A property of the unit of a name. */
const show = async (property: string, name: string): Promise<string> =>
  (await type(`systemctl show -P ${property} postern-device@${name}`)).trim()

const pids = (...names: readonly string[]): Promise<readonly string[]> =>
  Promise.all(names.map((name) => show('MainPID', name)))

describe('Several devices on one host', () => {
  beforeAll(async () => {
    if (process.getuid?.() === 0 && ['mmdebstrap', ...TOOLS].every(isInstalled)) await prepare()
  }, 900_000)

  it('H325 each get a service by the commands of the page, with state, ports and a share of memory of its own', async () => {
    needsMachine(...TOOLS)
    await type(`apt-get install -y ./postern_${VERSION}_*.deb`)
    await type(ALONE)
    expect(await add('boiler')).toContain('  postern try / --instance boiler\n')
    expect(await add('pump')).toContain('  postern try / --instance pump\n')
    expect(await type('stat -c "%a %U:%G %n" /etc/postern/devices /etc/postern/devices/pump.yaml')).toBe(
      '750 root:postern /etc/postern/devices\n640 root:postern /etc/postern/devices/pump.yaml\n',
    )
    expect(await type('stat -c "%a %U %n" /var/lib/postern/devices /var/lib/postern/devices/*')).toBe(
      ['', '/boiler', '/pump'].map((name) => `700 postern /var/lib/postern/devices${name}\n`).join(''),
    )
    tokens = { boiler: await logIn('boiler', 8501), pump: await logIn('pump', 8502) }
    expect([await use('boiler', 8501), await use('pump', 8502)]).toEqual(['device\n200', 'device\n200'])
    // The token of one is none at the other.
    const other = await curl(
      'pump',
      8502,
      "-o /dev/null -w '%{http_code}' https://localhost:PORT/ -H @-",
      `Authorization: Bearer ${tokens.boiler}\n`,
    )
    expect(other).toBe('401')
    expect(await show('MemoryMax', 'pump')).toBe(String(128 * 1024 ** 2))
    expect(await show('ControlGroup', 'pump')).toMatch(
      /\/postern-devices\.slice\/postern-device@pump\.service$/,
    )
    expect(await type('systemctl show -P MemoryMax postern-devices.slice')).toMatch(/^\d+\n$/)
    expect(await type('systemd-analyze security --no-pager postern-device@pump')).toMatch(
      /exposure level for .*: [01]\./,
    )
  })

  it('H322 commands with `--instance` find the service of that device, and no other', async () => {
    needsMachine(...TOOLS)
    expect(await type('runuser -u postern -- postern check --instance pump')).toMatch(
      /^ok +other instances: none has an address of this one: boiler$/m,
    )
    expect(await type('postern healthy --ready --instance pump')).toMatch(
      /^ok: \/readyz at 127\.0\.0\.1:9502$/m,
    )
    expect(JSON.parse(await type('postern explain --instance pump --json')).requests).not.toEqual([])
    const looked = await type(LOOK)
    expect(looked).toContain('postern-device@boiler.service')
    expect(looked).toMatch(/postern-boiler\[\d+\]/)
    expect(looked).toMatch(/^1 grant revoked$/m)
    expect(await use('boiler', 8501)).toMatch(/401$/)
    expect(await use('pump', 8502)).toBe('device\n200')
    const issued = await type('postern issue --instance boiler --for 1h --label probe')
    tokens = { ...tokens, boiler: issued.trim() }
    expect(await use('boiler', 8501)).toBe('device\n200')
    const unknown = await machine.run('postern status --instance boilr')
    expect([unknown.code, unknown.stderr]).toEqual([
      2,
      expect.stringContaining('the instances are boiler, pump'),
    ])
  })

  it('H325 a reload reaches one device, and one that is broken leaves the others alone', async () => {
    needsMachine(...TOOLS)
    const before = await pids('boiler', 'pump')
    await type('systemctl reload postern-device@boiler')
    await add('kiln')
    await type("systemctl stop postern-device@kiln && echo 'upstraem: {}' >> /etc/postern/devices/kiln.yaml")
    expect((await machine.run('systemctl start postern-device@kiln')).code).not.toBe(0)
    expect(await show('ActiveState', 'kiln')).toBe('failed')
    expect(await type('journalctl --sync; journalctl -u postern-device@kiln -p err -o cat')).toMatch(
      /^postern serve: .*kiln\.yaml:\d+: upstraem/m,
    )
    // Its ports stay its own.
    await add('saw')
    expect(await type('grep -h "^  address" /etc/postern/devices/saw.yaml')).toBe(
      '  address: auto:8504\n  address: 127.0.0.1:9504\n',
    )
    await type('systemctl stop postern-device@saw')
    expect(await pids('boiler', 'pump')).toEqual(before)
    expect(await use('boiler', 8501)).toBe('device\n200')
  })

  it('H325 a restart and an upgrade take the running ones one after the other, and leave the others alone', async () => {
    needsMachine(...TOOLS)
    for (const command of [RESTART, `dpkg -i postern_${VERSION}_*.deb`]) {
      const before = await pids('boiler', 'pump')
      const broken = await show('InvocationID', 'kiln')
      await type(command)
      const after = await pids('boiler', 'pump')
      expect(after.filter((pid, i) => pid === before[i] || pid === '0')).toEqual([])
      const [ready, begun] = await Promise.all([
        show('ActiveEnterTimestampMonotonic', 'boiler'),
        show('InactiveExitTimestampMonotonic', 'pump'),
      ])
      // The second begins when the first serves.
      expect(Number(begun)).toBeGreaterThan(Number(ready))
      expect([await show('ActiveState', 'saw'), await show('ActiveState', 'kiln')]).toEqual([
        'inactive',
        'failed',
      ])
      expect(await show('InvocationID', 'kiln')).toBe(broken)
      expect([await use('boiler', 8501), await use('pump', 8502)]).toEqual(['device\n200', 'device\n200'])
    }
    expect(await type('systemctl is-active postern || true')).toBe('inactive\n')
  })

  it('H325 an upgrade stops at a device that does not start, and names it', async () => {
    needsMachine(...TOOLS)
    await type('mv /etc/postern/devices/boiler.password .')
    const [, before] = await pids('boiler', 'pump')
    const { code, stderr } = await machine.run(`dpkg -i postern_${VERSION}_*.deb`)
    const unit = 'postern-device@boiler.service'
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining(`${unit} does not start. The reason: journalctl -u ${unit} -n 20.`),
    ])
    expect((await pids('pump'))[0]).toBe(before)
    const [, remedy = ''] = /When it is mended: (.*)/.exec(stderr) ?? []
    await type(`mv boiler.password /etc/postern/devices/ && ${remedy}`)
    expect(await use('boiler', 8501)).toBe('device\n200')
    expect((await pids('pump'))[0]).not.toBe(before)
  })

  it('H326 are told apart by Prometheus: each is a target with its name', async () => {
    needsMachine(...TOOLS)
    mkdirSync(join(machine.root, 'etc/prometheus'))
    await type(TARGETS)
    expect(await type('head -n 4 /etc/prometheus/postern-devices.yml')).toBe(
      '- targets: [127.0.0.1:9501]\n  labels: {instance: boiler}\n- targets: [127.0.0.1:9503]\n  labels: {instance: kiln}\n',
    )
  })

  it('H325 run again after a reboot, go by the commands of the page, and end with the package', async () => {
    needsMachine(...TOOLS)
    await machine.reboot()
    expect([await use('boiler', 8501), await use('pump', 8502)]).toEqual(['device\n200', 'device\n200'])
    await type(DELETE)
    expect(await type('ls /etc/postern/devices /var/lib/postern/devices')).not.toContain('boiler')
    await type('apt-get remove -y postern')
    expect((await machine.run('systemctl is-active postern-device@pump')).stdout).toBe('inactive\n')
    expect(existsSync(join(machine.root, 'etc/postern/devices/pump.yaml'))).toBe(true)
    await type('apt-get purge -y postern')
    const left = [
      'etc/postern',
      'var/lib/postern',
      'etc/systemd/system/multi-user.target.wants/postern-device@pump.service',
    ]
    expect(left.filter((path) => existsSync(join(machine.root, path)))).toEqual([])
  })
})
