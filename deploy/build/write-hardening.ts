import { readFileSync, writeFileSync } from 'node:fs'
import { hardeningPage } from './hardening.ts'
import { operatingPage } from './operating.ts'

for (const [name, write] of [
  ['hardening', hardeningPage],
  ['operating', operatingPage],
] as const) {
  const page = new URL(`../../docs/${name}.md`, import.meta.url)
  writeFileSync(page, write(readFileSync(page, 'utf8')))
}
