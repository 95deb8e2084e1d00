import type { Source } from './requirement.ts'
import { API_TOP_TEN } from './sources/api-top-ten.ts'
import { RFC_9700 } from './sources/rfc-9700.ts'

/** The sources, in the order of docs/evidence.md. */
export const SOURCES: readonly Source[] = [API_TOP_TEN, RFC_9700]
