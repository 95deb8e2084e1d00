import { writeFileSync } from 'node:fs'
import { referencePage, referenceSchema } from './reference.ts'

const deploy = new URL('../../deploy/', import.meta.url)

writeFileSync(new URL('configuration.md', deploy), referencePage())
writeFileSync(new URL('postern.schema.json', deploy), referenceSchema())
