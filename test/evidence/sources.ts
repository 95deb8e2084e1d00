import type { Source } from './requirement.ts'
import { RFC_9700 } from './sources/rfc-9700.ts'

/** The sources, in the order of docs/evidence.md. */
export const SOURCES: readonly Source[] = [RFC_9700]
