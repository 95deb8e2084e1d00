import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { needs, run } from '../support/tools.ts'
import { type Launched, MAIN, prepareSite, type Site } from './serve.ts'

/** A network of its own, with loopback and no other address. */
const UNDER = ['unshare', '--net', 'sh', '-c', 'ip link set lo up && exec "$@"', 'sh']
const LATE = '192.0.2.77'
const SAID = 'waiting for an address that this machine does not have yet'

/** Skips the test without what makes a network. */
function needsNetwork(skip: (when: boolean, why: string) => void): void {
  for (const tool of ['unshare', 'nsenter', 'ip', 'curl']) needs(tool)
  skip(process.getuid?.() !== 0, 'it takes root')
}

/** Runs a command in the network of the sidecar. */
const inside = ({ pid }: Launched, ...command: readonly string[]) =>
  run('nsenter', ['--target', String(pid), '--net', ...command])

const addAddress = (launched: Launched) => inside(launched, 'ip', 'addr', 'add', `${LATE}/32`, 'dev', 'lo')

/** `postern healthy`, within the network. */
const healthy = (launched: Launched, { configFile }: Site) =>
  inside(launched, process.execPath, MAIN, 'healthy', '--config', configFile)

async function launchWith(addresses: { readonly listen: string; readonly admin: string }) {
  const site = await prepareSite({
    config: { listen: { address: addresses.listen }, admin: { address: addresses.admin } },
  })
  const launched = site.launch({ under: UNDER })
  await launched.waitForLog(SAID)
  return { site, launched }
}

describe('H108 an address that this machine gets later, by DHCP or a VPN,', () => {
  it('of clients: the sidecar says so once, runs, and listens when it comes', async ({ skip }) => {
    needsNetwork(skip)
    const { site, launched } = await launchWith({ listen: `${LATE}:8443`, admin: '127.0.0.1:9464' })
    expect(launched.logged(SAID)).toMatchObject([
      {
        level: 40,
        key: 'listen.address',
        address: `${LATE}:8443`,
        reason: `cannot listen on ${LATE}:8443: this machine has no address ${LATE} (EADDRNOTAVAIL)`,
        remedy: expect.stringContaining('ip addr'),
      },
    ])
    // What ExecStartPost of the unit asks: the start of the service does not fail meanwhile.
    expect(await healthy(launched, site)).toMatchObject({ code: 0 })
    const ready = await inside(launched, 'curl', '-sS', 'http://127.0.0.1:9464/readyz')
    expect(ready.stdout).toContain('starting')
    const { stdout } = await site.postern('status')
    expect(stdout.replaceAll(/\s+/g, ' ')).toContain(
      `Waiting for listen.address ${LATE}:8443, which this machine does not have yet`,
    )
    await addAddress(launched)
    expect(await launched.waitForLog('listening')).toMatchObject({
      public: `http://${LATE}:8443`,
      admin: 'http://127.0.0.1:9464',
    })
    const answer = await inside(launched, 'curl', '-sS', `http://${LATE}:8443/`)
    expect(answer.stdout).toContain('invalid_token')
    expect(launched.logged(SAID)).toHaveLength(1)
    expect((await site.postern('status')).stdout).not.toContain('Waiting')
    expect(await launched.stop()).toEqual({ code: 0, signal: null })
  })

  it('of operators: clients are served meanwhile, and `healthy` says why it cannot ask', async ({ skip }) => {
    needsNetwork(skip)
    const { site, launched } = await launchWith({ listen: '127.0.0.1:8443', admin: `${LATE}:9464` })
    expect(await launched.waitForLog('listening')).toMatchObject({
      public: 'http://127.0.0.1:8443',
      admin: null,
    })
    const answer = await inside(launched, 'curl', '-sS', 'http://127.0.0.1:8443/')
    expect(answer.stdout).toContain('invalid_token')
    // Exit code 2: ExecStartPost then waits for some seconds, and lets the service run.
    expect(await healthy(launched, site)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(
        `the sidecar runs, and waits for ${LATE}:9464, which this machine does not have yet`,
      ),
    })
    await addAddress(launched)
    expect(await launched.waitForLog('listening', ({ admin }) => admin !== null)).toMatchObject({
      admin: `http://${LATE}:9464`,
    })
    expect(await healthy(launched, site)).toMatchObject({ code: 0 })
    expect(launched.logged(SAID)).toHaveLength(1)
    expect(await launched.stop()).toEqual({ code: 0, signal: null })
  })

  it('of both: a stop ends the wait, and leaves nothing behind', async ({ skip }) => {
    needsNetwork(skip)
    const { site, launched } = await launchWith({ listen: `${LATE}:8443`, admin: `${LATE}:9464` })
    await launched.waitForLog(SAID, ({ key }) => key === 'listen.address')
    await launched.waitForLog(SAID, ({ key }) => key === 'admin.address')
    expect(await launched.stop()).toEqual({ code: 0, signal: null })
    expect(await launched.stderr).toBe('')
    expect(existsSync(join(site.stateDir, 'control.sock'))).toBe(false)
  })
})
