import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { readPage, replaceIn, shellBlock } from '../support/pages.ts'
import { isInstalled } from '../support/tools.ts'
import { addCheckout, addDevice, LIBRARIES, type Operator, operatorOf, PASSWORD } from './equipment.ts'
import { bootMachine, type Machine, minimalDebian, needsMachine } from './machine.ts'
import { PROCESSOR } from './made-once.ts'

const TOOLS = ['systemd-nspawn', 'nsenter']

let machine: Machine
let type: Operator['type']
let ask: Operator['ask']
let logIn: Operator['logIn']
let token: string

/** A block of the page, for the processor of this machine. */
const installing = (block: string): string =>
  replaceIn(block, 'postern-linux-x64', `postern-linux-${PROCESSOR}`)

async function prepare(): Promise<void> {
  const root = await minimalDebian()
  await addCheckout(root)
  addDevice(root)
  machine = await bootMachine(root)
  ;({ type, ask, logIn } = operatorOf(machine))
}

/** Sends requests until one is past the limit. */
const exceedTheLimit = (): Promise<string> =>
  type('for i in $(seq 70); do curl -ksS -o /dev/null -w "%{http_code}\\n" https://localhost:8443/; done')

describe('Another Linux with systemd', () => {
  beforeAll(async () => {
    if (process.getuid?.() === 0 && ['mmdebstrap', ...TOOLS].every(isInstalled)) await prepare()
  }, 900_000)

  it('runs the executable as a service after the commands of docs/installing.md', async () => {
    needsMachine(...TOOLS)
    expect(readPage('docs/installing.md')).toContain(`\`${LIBRARIES}\``)
    await type(LIBRARIES)
    await type(installing(shellBlock('docs/installing.md', 'useradd')))
    const checked = await type(shellBlock('docs/installing.md', 'asks twice'), `${PASSWORD}\n`)
    expect(checked).toContain('http://127.0.0.1:8080 answered 200')
    token = await logIn()
    expect(await ask(token)).toBe('device\n200')
    expect(await type('systemctl is-enabled postern')).toBe('enabled\n')
  })

  it('H76 says of a start that fails and of a reload that is refused that they failed, with the reason in the journal', async () => {
    needsMachine(...TOOLS)
    const journal = (): Promise<string> =>
      type('journalctl --sync; journalctl -u postern -p err -n 20 -o cat')
    await type('cp -a /etc/postern/postern.yaml kept.yaml && mv /etc/postern/password .')
    expect((await machine.run('systemctl restart postern')).code).not.toBe(0)
    expect(await type('systemctl is-active postern || true')).toBe('failed\n')
    expect(await type('systemctl show -P NRestarts postern')).toBe('0\n')
    expect(await journal()).toMatch(/^postern serve: .*\/etc\/postern\/password/m)

    await type('mv password /etc/postern/ && systemctl start postern')
    const running = await type('systemctl show -P MainPID postern')
    await type("echo 'upstraem: {}' >> /etc/postern/postern.yaml")
    expect((await machine.run('systemctl reload postern')).code).not.toBe(0)
    expect(await journal()).toMatch(/^postern check: .*upstraem/m)
    expect(await ask(token)).toBe('device\n200')
    await type('cp -a kept.yaml /etc/postern/postern.yaml && systemctl reload postern')
    expect(await type('systemctl show -P MainPID postern')).toBe(running)

    // Nothing can be asked then, so the start waits and looks at the process.
    const override = '/run/systemd/system/postern.service.d'
    await type(
      `mkdir ${override} && printf '[Service]\\nEnvironment=POSTERN_ADMIN_ADDRESS=off\\n' > ${override}/off.conf`,
    )
    await type('systemctl daemon-reload && systemctl restart postern')
    expect(await ask(token)).toBe('device\n200')
    await type(`rm -r ${override} && systemctl daemon-reload && systemctl reset-failed postern`)
    await type('systemctl restart postern')
  })

  it('H320 waits for the sidecar at a start over TLS, too, and `healthy` trusts its certificate', async () => {
    needsMachine(...TOOLS)
    await type("sed -i 's/^  # tls: off$/  tls: on/' /etc/postern/postern.yaml && systemctl restart postern")
    expect(await type('systemctl is-active postern')).toBe('active\n')
    expect(await type('postern healthy --ready')).toBe('ok: /readyz at 127.0.0.1:9464\n')
    expect(await type('runuser -u postern -- postern healthy')).toBe('ok: /healthz at 127.0.0.1:9464\n')
    const get = 'curl -sS --cacert /var/lib/postern/tls/cert.pem https://localhost:9464/healthz'
    expect(await type(get)).toContain('"ok"')
    expect((await machine.run('curl -sS http://localhost:9464/healthz')).code).not.toBe(0)
    await type('cp -a kept.yaml /etc/postern/postern.yaml && systemctl restart postern')
    expect(await type('postern healthy')).toBe('ok: /healthz at 127.0.0.1:9464\n')
  })

  it('keeps tokens through the commands for an upgrade, and through a reboot', async () => {
    needsMachine(...TOOLS)
    const before = await type('systemctl show -P MainPID postern')
    await type(installing(shellBlock('docs/installing.md', 'postern check && systemctl restart')))
    expect(await type('systemctl show -P MainPID postern')).not.toBe(before)
    expect(await ask(token)).toBe('device\n200')
    await machine.reboot()
    expect(await ask(token)).toBe('device\n200')
    expect((await machine.run(shellBlock('docs/operating.md', '-o cat -b'))).stdout).toBe('')
  })

  it.each([
    ['clients', 'LISTEN', '/healthz', 9464],
    ['operators', 'ADMIN', '/oauth/token', 8443],
  ])(
    'H76 H108 runs through a boot in which the address of %s comes late, and listens there when it has come',
    async (_whose, section, path, here) => {
      needsMachine(...TOOLS)
      const port = section === 'LISTEN' ? 8443 : 9464
      const [override, address] = ['/etc/systemd/system/postern.service.d', `192.0.2.77:${port}`]
      await type(
        `mkdir -p ${override} && printf '[Service]\\nEnvironment=POSTERN_${section}_ADDRESS=${address}\\n' > ${override}/late.conf`,
      )
      await machine.reboot()
      const state = 'systemctl show -P ActiveState -P NRestarts postern'
      const said =
        "journalctl --sync; journalctl -u postern -b -o cat | grep -c 'waiting for an address' || true"
      // The boot may have ended before the service is up.
      await expect.poll(() => type(state)).toBe('0\nactive\n')
      await expect.poll(() => type(said)).toBe('1\n')
      const other = `curl -ksS -o /dev/null -w '%{http_code}' ${here === 9464 ? 'http' : 'https'}://localhost:${here}${path}`
      expect(await type(other)).toMatch(/^[24]00$/)
      machine.spawnBeside(['ip', 'addr', 'add', '192.0.2.77/32', 'dev', 'lo'])
      const late = port === 8443 ? `https://${address}/oauth/token` : `http://${address}/healthz`
      expect(
        await type(
          `curl -ksS --retry 20 --retry-delay 1 --retry-all-errors -o /dev/null -w '%{http_code}' ${late}`,
        ),
      ).toMatch(/[24]00$/)
      // Without the wait, systemd would have given up after the fifth start, in the 15th second of the boot.
      expect(await type(state)).toBe('0\nactive\n')
      expect(await type(said)).toBe('1\n')
      await type(`rm -r ${override}`)
      await machine.reboot()
      expect(await ask(token)).toBe('device\n200')
    },
  )

  it('tells by the commands of docs/operating.md who gets 429 and 401, and how the device is', async () => {
    needsMachine(...TOOLS)
    expect(await exceedTheLimit()).toMatch(/^429$/m)
    // The journal has a line when journald has read it.
    await expect
      .poll(() => type(shellBlock('docs/operating.md', 'postern_rate_limited_total')))
      .toMatch(/^postern_rate_limited_total\{endpoint="api"\} [1-9][\s\S]*^ +\d+ "client":"127\.0\.0\.1"$/m)
    const unauthorized = await type(shellBlock('docs/operating.md', 'postern_auth_failures_total'))
    expect(unauthorized).toMatch(/^postern_auth_failures_total\{reason="missing"\} [1-9]/m)
    expect(unauthorized).toContain('127.0.0.1')
    const device = await type(shellBlock('docs/operating.md', 'upstream|request_duration'))
    expect(device).toMatch(/^postern_upstream_in_flight 0$/m)
    const certificate = await type(shellBlock('docs/operating.md', 'grep -A 3 certificate'))
    expect(certificate).toMatch(/^ok +certificate.*localhost/m)
    expect(certificate).toMatch(/^postern_certificate_expiry_timestamp_seconds \d/m)
  })

  it('revokes one grant by the commands of docs/operating.md', async () => {
    needsMachine(...TOOLS)
    const [{ id }] = JSON.parse(await type('postern status --json')).grants
    const revoked = await type(replaceIn(shellBlock('docs/operating.md', 'postern revoke'), 'GRANT', id))
    expect(revoked).toContain('1 grant revoked\n')
    await type('systemctl restart postern') // opens new windows
    expect(await ask(token)).toMatch(/401$/)
  })

  it('takes another password, by the commands of docs/operating.md, without a restart', async () => {
    needsMachine(...TOOLS)
    token = await logIn()
    await type(shellBlock('docs/operating.md', 'password.new'), 'another password\n')
    await expect.poll(() => ask(token)).toMatch(/401$/)
    token = await logIn('another password')
    expect(await ask(token)).toBe('device\n200')
    await machine.reboot()
    expect(await type(shellBlock('docs/operating.md', '-o cat -b').replace(' -b', ''))).toMatch(
      /"msg":"tokens revoked"/,
    )
  })

  it('hands the password over as a credential after the printed commands', async () => {
    needsMachine(...TOOLS)
    await type(shellBlock('docs/installing.md', 'postern-credential.conf'))
    token = await logIn('another password')
    expect(await ask(token)).toBe('device\n200')
    await type('systemctl reload postern')
    expect(await type('stat -c %U:%G:%a /etc/postern/password')).toBe('root:postern:600\n')
  })

  it('is gone after the printed commands', async () => {
    needsMachine(...TOOLS)
    await type(shellBlock('docs/installing.md', 'userdel'))
    expect((await machine.run('systemctl cat postern.service postern.socket')).code).not.toBe(0)
    expect((await machine.run('id postern')).code).not.toBe(0)
    const left = ['etc/postern', 'usr/local/bin/postern', 'var/lib/postern', 'var/lib/private/postern']
    expect(left.filter((path) => existsSync(join(machine.root, path)))).toEqual([])
    expect(await type('systemctl --failed --plain --no-legend')).toBe('')
  })
})
