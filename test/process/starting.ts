import { spawnSync } from 'node:child_process'
import { readFileSync, renameSync, symlinkSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { closeLater } from '../support/cleanup.ts'
import type { Launched, Site } from './serve.ts'

/**
 * Starts a sidecar and calls `act` while the sidecar waits for its configuration. For this first read the configuration
 * is a named pipe, which blocks; after that it is the ordinary file.
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
  const opening = open(pipe, 'w') // resolves when the sidecar opens the other end
  const writer = await Promise.race([opening, sidecar.exit])
  if ('code' in writer) throw new Error(`exited before it read its configuration: ${JSON.stringify(writer)}`)
  closeLater(() => writer.close().catch(() => {}))
  act(sidecar)
  symlinkSync(real, link)
  renameSync(link, site.configFile)
  await writer.writeFile(readFileSync(real))
  await writer.close()
  return sidecar
}
