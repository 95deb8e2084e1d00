import type { Target } from './target.ts'
import { bearer } from './targets/bearer.ts'
import { certificates } from './targets/certificates.ts'
import { chunks } from './targets/chunks.ts'
import { device } from './targets/device.ts'
import { differential } from './targets/differential.ts'
import { forms } from './targets/forms.ts'
import { frames } from './targets/frames.ts'
import { heads } from './targets/heads.ts'
import { readers } from './targets/readers.ts'

export const targets: readonly Target[] = [
  heads,
  readers,
  chunks,
  forms,
  bearer,
  frames,
  device,
  certificates,
  differential,
]
