import { readFileSync, writeFileSync } from 'node:fs'
import { hardeningPage } from './hardening.ts'

const page = new URL('../../docs/hardening.md', import.meta.url)

writeFileSync(page, hardeningPage(readFileSync(page, 'utf8')))
