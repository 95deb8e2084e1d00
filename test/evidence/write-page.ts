import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { readEvidence } from './evidence.ts'
import { evidenceJson } from './json.ts'
import { evidencePage } from './page.ts'
import { requirementsModule } from './requirements-module.ts'

const root = join(import.meta.dirname, '../..')
const evidence = readEvidence(root)

writeFileSync(join(root, 'docs/evidence.md'), evidencePage(evidence))
writeFileSync(join(root, 'docs/evidence.json'), evidenceJson(evidence))
writeFileSync(join(root, 'src/commands/check/requirements.ts'), requirementsModule())
