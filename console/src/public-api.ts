// Calls to the server without a token, for pages that need nothing else.
import { client } from '@hawser/contract/client'

export const publicApi = client({ url: '' })
