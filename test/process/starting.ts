import { spawnSync } from 'node:child_process'
import { readFileSync, renameSync, symlinkSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { closeLater } from '../support/cleanup.ts'
import type { Launched, Site } from './serve.ts'

/**
 * Starts a sidecar and holds it in the middle of its start, in the first reading of its configuration, while `act` does
 * something to it. The configuration is a named pipe for that one reading, and the ordinary file from then on.
 */
export async function duringStart(site: Site, act: (sidecar: Launched) => void): Promise<Launched> {
  const [real, pipe, link] = ['real', 'pipe', 'link'].map((name) => `${site.configFile}.${name}`) as [
    string,
    string,
    string,
  ]
  spawnSync('mkfifo', [pipe])
  renameSync(site.configFile, real)
  symlinkSync(pipe, site.configFile)
  const sidecar = site.launch()
  const opening = open(pipe, 'w') // goes through when the sidecar opens the other end
  const writer = await Promise.race([opening, sidecar.exit])
  if ('code' in writer) throw new Error(`ended before it read its configuration: ${JSON.stringify(writer)}`)
  closeLater(() => writer.close().catch(() => {}))
  act(sidecar)
  symlinkSync(real, link)
  renameSync(link, site.configFile)
  await writer.writeFile(readFileSync(real))
  await writer.close()
  return sidecar
}
