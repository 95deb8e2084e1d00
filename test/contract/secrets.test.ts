import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { prepareSite, type Site } from '../process/serve.ts'
import { formAuth, startBasicDevice, startDigestDevice, startFormDevice } from '../sign-in/devices.ts'
import type { Response } from '../support/message.ts'
import { acceptWebSockets } from '../support/websocket.ts'
import { configurationErrors, filesBelow, misconfigure, useControlSocket } from './canary-operator.ts'
import {
  ACCOUNT,
  CANARY,
  FIRMWARE,
  failAtDevice,
  forward,
  PASSWORD,
  sendGarbage,
  useTokenEndpoint,
} from './canary-traffic.ts'

const devices = { basic: startBasicDevice, digest: startDigestDevice, form: startFormDevice } as const

async function prepare(kind: keyof typeof devices): Promise<Site> {
  const locked = await devices[kind]()
  locked.password = ACCOUNT
  acceptWebSockets(locked.device)
  const site = await prepareSite({
    device: locked.device,
    transport: 'tls',
    password: PASSWORD,
    config: {
      log: { level: 'trace' },
      tokens: { rotate_refresh: true },
      oauth: { revocation_path: '/oauth/revoke' },
      limits: { oauth: { requests: 60 } },
    },
  })
  const [account, firmware] = ['account', 'firmware'].map((name) => join(site.directory, name)) as [
    string,
    string,
  ]
  writeFileSync(account, `${ACCOUNT}\n`)
  writeFileSync(firmware, `${FIRMWARE}\n`)
  const scheme = kind === 'form' ? formAuth() : { kind, user: 'admin' }
  const auth = { ...scheme, password: { file: account }, check_path: '/home' }
  // So long a device is tried that is down.
  const connect_timeout = '2s'
  site.configure({ upstream: { auth, connect_timeout, headers: { 'X-Firmware-Key': { file: firmware } } } })
  return site
}

const ofProcess = (pid: number): string =>
  ['cmdline', 'environ'].map((name) => readFileSync(`/proc/${pid}/${name}`, 'latin1')).join('\n')

/** A secret as it is, in hexadecimal, and in base64 at each of the three alignments. */
function formsOf(secret: string): string[] {
  const base64 = [0, 1, 2].map((shift) => {
    const whole = Buffer.from('x'.repeat(shift) + secret).toString('base64')
    return whole.slice(shift === 0 ? 0 : 4, Math.floor((shift + secret.length) / 3) * 4)
  })
  return [secret, Buffer.from(secret).toString('hex'), ...base64]
}

function expectNone(place: string, content: string, secrets: readonly string[]): void {
  for (const secret of secrets) {
    const at = content.indexOf(secret)
    expect(at < 0 ? '' : content.slice(Math.max(0, at - 200), at + 100), `${secret} in ${place}`).toBe('')
  }
}

describe('H81 Canaries', () => {
  it.each(['basic', 'digest', 'form'] as const)(
    'C9 H81 in every secret reach no log, metric, response, state file or process table, with %s sign-in at the device',
    async (kind) => {
      const site = await prepare(kind)
      const sidecar = await site.serve()
      const started = ofProcess(sidecar.pid)
      const received: string[] = []
      const collect = ({ text: body, fields }: Response): void => {
        received.push(body, fields.join('\n'))
      }
      const tokens = await useTokenEndpoint(sidecar, collect)
      const token = tokens[1]?.access_token ?? ''
      await forward(sidecar, token, collect)
      const seen = site.device.bytes.toString('latin1')
      received.push(await failAtDevice(site, sidecar, token))
      let operated = ''
      // Only once: these do not depend on the kind of sign-in.
      if (kind === 'form') {
        const [garbage, control] = await Promise.all([sendGarbage(sidecar), useControlSocket(site, sidecar)])
        received.push(garbage)
        operated = control + configurationErrors(site.configFile)
        await misconfigure(site, sidecar)
        expect(operated).toContain('access tokens')
      }
      const metrics = await (await fetch(`${sidecar.adminUrl}/metrics`)).text()
      const running = ofProcess(sidecar.pid)
      const state = filesBelow(site.stateDir)
      await sidecar.stop()

      const log = sidecar.lines.join('\n')
      const responses = received.join('\n')
      // Each place holds something of these requests: otherwise the check below would prove nothing.
      for (const [place, mark] of [
        [log, '/api'],
        [metrics, 'postern_'],
        [responses, 'invalid_grant'],
        [state, 'SQLite'],
        [running, 'serve'],
        [seen, '/api'],
      ] as const) {
        expect(place).toContain(mark)
      }
      const secrets = tokens.flatMap((pair) => [pair.access_token, pair.refresh_token])
      const stderr = await sidecar.stderr
      const places = {
        log,
        stderr,
        metrics,
        responses,
        operated,
        started,
        running,
        state,
        stopped: filesBelow(site.stateDir),
      }
      for (const [place, content] of Object.entries(places)) {
        expectNone(place, content, [CANARY, ...secrets].flatMap(formsOf))
        // The raw bytes of a token are as secret as its text.
        expectNone(
          place,
          content,
          secrets.map((secret) => Buffer.from(secret, 'base64url').toString('latin1')),
        )
      }
      // The device gets its own secrets, but no token and not the password of the grant.
      expectNone('the device', seen, [...secrets, 'of the grant'].flatMap(formsOf))
      expect(running).toBe(started)
    },
  )
})
