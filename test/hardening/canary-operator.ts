import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { request as httpRequest } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { loadConfig } from '../../src/config/load.ts'
import type { Served, Site } from '../process/serve.ts'
import type { YamlPart } from '../support/sidecar.ts'
import { CANARY } from './canary-traffic.ts'

/** What is said of configurations that are wrong where a secret stands. */
export function misread(configFile: string): string {
  const good = readFileSync(configFile, 'utf8')
  const over = (part: YamlPart): string => JSON.stringify({ ...JSON.parse(good), ...part })
  const url = 'http://127.0.0.1'
  const wrongs = [
    `${good.slice(0, -1)}, "password": "${CANARY}"`,
    `password: ${CANARY}: x\n  - ${CANARY}\n`,
    over({ password: CANARY }),
    over({ password: { file: [CANARY] } }),
    over({ passwort: { file: CANARY }, tokens: { store: `valkey:/${CANARY}` } }),
    over({ upstream: { url: `http://admin:${CANARY}@127.0.0.1` } }),
    over({
      upstream: {
        url,
        headers: { X: `${CANARY}\n`, Host: CANARY, 'X-A': [CANARY], 'X-B': { fill: CANARY } },
      },
    }),
    over({ upstream: { url, auth: { basic: { user: 'a', password: CANARY } } } }),
  ]
  return wrongs
    .map((wrong) => String(problemIn(() => loadConfig({ ...SOURCES, file: { path: 'x', text: wrong } }))))
    .join('\n')
}

const SOURCES = { env: {}, sets: [] } as const

function problemIn(load: () => unknown): unknown {
  try {
    return load()
  } catch (error) {
    return error
  }
}

/** A configuration that is wrong, and a password file that is no longer one, while the sidecar runs. */
export async function misconfigure(site: Site, sidecar: Served): Promise<void> {
  site.configure({ upstream: { headers: { X: `${CANARY}\n` } }, password: CANARY })
  await sidecar.waitForLog('configuration not reloaded: the previous one stays in effect')
  site.setPassword(`${CANARY}\n${CANARY} on a second line\n`)
  await sidecar.waitForLog('the password source cannot be used; the last good password stays valid')
}

/** The control socket, by commands good and bad, and the commands that speak to it. */
export async function control(site: Site, sidecar: Served): Promise<string> {
  const socketPath = join(site.stateDir, 'control.sock')
  const answers: string[] = [JSON.stringify(await sidecar.status())]
  for (const [path, body] of [
    ['/revoke', `{"grant": "${CANARY}", "token": "${CANARY}"}`],
    ['/revoke', `{${CANARY}`],
    ['/revoke', CANARY.repeat(2000)],
    [`/${CANARY}`, ''],
  ] as const) {
    const request = httpRequest({ socketPath, method: 'POST', path, agent: false })
    request.end(body)
    const [response] = await once(request, 'response')
    answers.push(await text(response))
  }
  const runs = await Promise.all([
    site.postern('status'),
    site.postern('status', '--json'),
    site.postern('check'),
    site.postern('revoke', '--all'),
  ])
  return [...answers, ...runs.flatMap(({ stdout, stderr }) => [stdout, stderr])].join('\n')
}

/** Everything that the files below a folder hold, a byte a character. */
export function filesBelow(folder: string): string {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile())
  return files.map((entry) => readFileSync(join(entry.parentPath, entry.name), 'latin1')).join('\n')
}
