import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { closeAll } from '../support/cleanup.ts'
import { isThere, measureAll } from './matrix.ts'
import { devicesPage } from './page.ts'
import { servers } from './servers.ts'

const missing = servers.filter((server) => !isThere(server)).map(({ debian }) => debian)
if (missing.length > 0) {
  process.stderr.write(`Not written: first install ${missing.join(', ')}\n`)
  process.exitCode = 1
} else {
  writeFileSync(join(import.meta.dirname, '../../docs/devices.md'), devicesPage(await measureAll()))
  await closeAll()
}
