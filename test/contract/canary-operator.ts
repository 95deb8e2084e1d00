import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { request as httpRequest } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { loadConfig } from '../../src/config/load.ts'
import type { Served, Site } from '../process/serve.ts'
import type { YamlPart } from '../support/sidecar.ts'
import { CANARY } from './canary-traffic.ts'

/** The error messages for configurations that are wrong at the place of a secret. */
export function configurationErrors(configFile: string): string {
  const good = readFileSync(configFile, 'utf8')
  const over = (part: YamlPart): string => JSON.stringify({ ...JSON.parse(good), ...part })
  const url = 'http://127.0.0.1'
  const configurations = [
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
    over({ upstream: { url, auth: { kind: 'basic', user: 'a', password: CANARY } } }),
  ]
  return configurations
    .map((text) => String(problemIn(() => loadConfig({ ...SOURCES, file: { path: 'x', text } }))))
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

/** Gives the running sidecar an invalid configuration and an invalid password file. */
export async function misconfigure(site: Site, sidecar: Served): Promise<void> {
  site.configure({ upstream: { headers: { X: `${CANARY}\n` } }, password: CANARY })
  await sidecar.waitForLog('configuration not reloaded: the previous one stays in effect')
  site.setPassword(`${CANARY}\n${CANARY} on a second line\n`)
  await sidecar.waitForLog('the password source cannot be used; the last good password stays valid')
}

/** Sends valid and invalid requests to the control socket, runs the commands that use it, and returns every output. */
export async function useControlSocket(site: Site, sidecar: Served): Promise<string> {
  const socketPath = join(site.stateDir, 'control.sock')
  const responses: string[] = [JSON.stringify(await sidecar.status())]
  for (const [path, body] of [
    ['/revoke', `{"grant": "${CANARY}", "token": "${CANARY}"}`],
    ['/revoke', `{${CANARY}`],
    ['/revoke', CANARY.repeat(2000)],
    [`/${CANARY}`, ''],
  ] as const) {
    const request = httpRequest({ socketPath, method: 'POST', path, agent: false })
    request.end(body)
    const [response] = await once(request, 'response')
    responses.push(await text(response))
  }
  const runs = await Promise.all([
    site.postern('status'),
    site.postern('status', '--json'),
    site.postern('check'),
    site.postern('revoke', '--all'),
  ])
  return [...responses, ...runs.flatMap(({ stdout, stderr }) => [stdout, stderr])].join('\n')
}

/** The content of all files below a folder, as Latin-1. */
export function filesBelow(folder: string): string {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile())
  return files.map((entry) => readFileSync(join(entry.parentPath, entry.name), 'latin1')).join('\n')
}
