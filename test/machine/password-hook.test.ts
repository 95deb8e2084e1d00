import { beforeAll, describe, expect, it } from 'vitest'
import { replaceIn, shellBlock } from '../support/pages.ts'
import { isInstalled } from '../support/tools.ts'
import { addCheckout, addDevice, LIBRARIES, type Operator, operatorOf } from './equipment.ts'
import { bootMachine, type Machine, minimalDebian, needsMachine } from './machine.ts'
import { PROCESSOR } from './made-once.ts'

const TOOLS = ['systemd-nspawn', 'nsenter']
const PASSWORD = 'näive "100%" \\ horse'

let machine: Machine
let type: Operator['type']
let ask: Operator['ask']
let logIn: Operator['logIn']

async function prepare(): Promise<void> {
  const root = await minimalDebian()
  await addCheckout(root)
  addDevice(root)
  machine = await bootMachine(root)
  ;({ type, ask, logIn } = operatorOf(machine))
  await type(LIBRARIES)
  const installing = shellBlock('docs/installing.md', 'useradd')
  await type(replaceIn(installing, 'postern-linux-x64', `postern-linux-${PROCESSOR}`))
}

const setPassword = (password: string): Promise<string> => type('chpasswd', `device:${password}\n`)

/** The status of a login. */
const statusOf = (password: string): Promise<string> =>
  type(
    "curl -sS -o /dev/null -w '%{http_code}' --cacert /var/lib/postern/tls/cert.pem https://localhost:8443/oauth/token -d grant_type=password --data-urlencode password@-",
    password,
  )

const checked = async (): Promise<string> => (await machine.run('runuser -u postern -- postern check')).stdout

describe('The password hook by PAM', () => {
  beforeAll(async () => {
    if (process.getuid?.() === 0 && ['mmdebstrap', ...TOOLS].every(isInstalled)) await prepare()
  }, 900_000)

  it('H360 checks the password of an account after the commands of docs/installing.md', async () => {
    needsMachine(...TOOLS)
    await type('useradd --system --shell /usr/sbin/nologin device')
    await setPassword(PASSWORD)
    await type(`cd deploy/pam\n${shellBlock('docs/installing.md', 'pamtester')}`)
    await type(
      "editor /etc/postern/postern.yaml && sed -i 's|^  file: /etc/postern/password.*|  socket: /run/postern/check.sock|' /etc/postern/postern.yaml",
    )
    expect(await checked()).toContain(
      'ok      password hook: it answers, and a changed password ends all tokens',
    )
    await type('systemctl enable --now postern')
    expect(await ask(await logIn(PASSWORD))).toBe('device\n200')
    for (const wrong of ['wrong', `${PASSWORD}x`, `${PASSWORD}\n`, `${PASSWORD}\nx`, 'x'.repeat(600)])
      expect(await statusOf(wrong), wrong).toBe('400')
    expect(await type('stat -c %U:%G:%a /run/postern/check.sock /run/postern')).toBe(
      'root:postern:660\nroot:root:755\n',
    )
    expect(await type("systemctl list-units --failed --plain --no-legend 'postern*'")).toBe('')
  })

  it('C8 a changed password, and a locked account, end the tokens, also over a reboot', async () => {
    needsMachine(...TOOLS)
    const token = await logIn(PASSWORD)
    await setPassword('another one')
    const later = await logIn('another one')
    expect(await ask(token)).toMatch(/401$/)
    expect(await ask(later)).toBe('device\n200')
    expect(await statusOf(PASSWORD)).toBe('400')
    await machine.reboot()
    expect(await ask(later)).toBe('device\n200')
    await type('systemctl stop postern && usermod -L device && systemctl start postern')
    expect(await ask(later)).toMatch(/401$/)
    expect(await statusOf('another one')).toBe('400')
    await type('usermod -U device')
  })

  it('H360 is a fault and no wrong password when PAM cannot say, and when the socket is gone', async () => {
    needsMachine(...TOOLS)
    await type(
      "sed -i 's/^Environment=ACCOUNT=device$/Environment=ACCOUNT=nobody2/' /etc/systemd/system/postern-check@.service && systemctl daemon-reload",
    )
    expect(await statusOf('another one')).toBe('500')
    expect(await type("journalctl --sync; journalctl -u 'postern-check@*' -o cat")).toContain(
      'User not known',
    )
    await type(
      "sed -i 's/^Environment=ACCOUNT=nobody2$/Environment=ACCOUNT=device/' /etc/systemd/system/postern-check@.service && systemctl daemon-reload",
    )
    await type('systemctl stop postern-check.socket && rm -f /run/postern/check.sock')
    expect(await statusOf('another one')).toBe('500')
    expect(await type('postern status')).toContain('/run/postern/check.sock: there is no such socket')
    await type('systemctl start postern-check.socket')
    expect(await statusOf('another one')).toBe('200')
  })

  it('H361 gets no password in a folder of another user', async () => {
    needsMachine(...TOOLS)
    await type('chown device /run/postern')
    expect(await statusOf('another one')).toBe('500')
    expect(await checked()).toMatch(
      /FAILED +password hook: .*belongs to user \d+, who could put a socket there/,
    )
    await type('chown root /run/postern')
    expect(await statusOf('another one')).toBe('200')
  })
})
