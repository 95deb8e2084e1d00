import type { Source } from './requirement.ts'
import { API_TOP_TEN } from './sources/api-top-ten.ts'
import { ASVS } from './sources/asvs.ts'
import { CRA } from './sources/cra.ts'
import { EN_303_645 } from './sources/en-303-645.ts'
import { IEC_62443_4_2 } from './sources/iec-62443-4-2.ts'
import { RFC_9700 } from './sources/rfc-9700.ts'

/** The sources, in the order of docs/evidence.md. */
export const SOURCES: readonly Source[] = [EN_303_645, CRA, IEC_62443_4_2, ASVS, API_TOP_TEN, RFC_9700]
