//! Methods that an adapted array forwards to its source.

/// Implements these methods of [`Array`](hyperslab_core::Array) by calling them on the array in a field.
macro_rules! forward_to {
    ($inner:ident: $($method:ident),+ $(,)?) => { $($crate::adapt::forward_to!(@$method $inner);)+ };
    (@name $inner:ident) => {
        fn name(&self) -> &str {
            self.$inner.name()
        }
    };
    (@locate $inner:ident) => {
        fn locate(
            &self,
            chunks: &[hyperslab_core::ChunkCoord],
        ) -> hyperslab_core::Result<Vec<Option<hyperslab_core::ChunkRef>>> {
            self.$inner.locate(chunks)
        }
    };
    (@blob $inner:ident) => {
        fn blob(
            &self,
            key: &hyperslab_core::BlobKey,
        ) -> hyperslab_core::Result<std::sync::Arc<dyn hyperslab_core::Blob>> {
            self.$inner.blob(key)
        }
    };
    (@decode $inner:ident) => {
        fn decode(
            &self,
            chunk: &hyperslab_core::ChunkCoord,
            reference: &hyperslab_core::ChunkRef,
            stored: &[bytes::Bytes],
            out: &mut [u8],
        ) -> hyperslab_core::Result<()> {
            self.$inner.decode(chunk, reference, stored, out)
        }
    };
    (@decode_partial $inner:ident) => {
        fn decode_partial(
            &self,
            wanted: &hyperslab_core::PlannedChunk,
            reference: &hyperslab_core::ChunkRef,
            stored: &[bytes::Bytes],
            out: hyperslab_core::PartialOutput<'_, '_>,
        ) -> hyperslab_core::Result<hyperslab_core::Coverage> {
            self.$inner.decode_partial(wanted, reference, stored, out)
        }
    };
    (@decode_elements $inner:ident) => {
        fn decode_elements(
            &self,
            chunk: &hyperslab_core::ChunkCoord,
            reference: &hyperslab_core::ChunkRef,
            stored: &[bytes::Bytes],
        ) -> hyperslab_core::Result<hyperslab_core::Elements> {
            self.$inner.decode_elements(chunk, reference, stored)
        }
    };
    (@visit_chunks $inner:ident) => {
        fn visit_chunks(
            &self,
            visit: &mut dyn FnMut(
                hyperslab_core::ChunkCoord,
                hyperslab_core::ChunkRef,
            ) -> hyperslab_core::Result<std::ops::ControlFlow<()>>,
        ) -> hyperslab_core::Result<()> {
            self.$inner.visit_chunks(visit)
        }
    };
    (@visits_every_chunk $inner:ident) => {
        fn visits_every_chunk(&self) -> bool {
            self.$inner.visits_every_chunk()
        }
    };
    (@usage $inner:ident) => {
        fn usage(&self) -> hyperslab_core::Result<hyperslab_core::Usage> {
            self.$inner.usage()
        }
    };
    (@verify_checksum $inner:ident) => {
        fn verify_checksum(
            &self,
            chunk: &hyperslab_core::ChunkCoord,
            reference: &hyperslab_core::ChunkRef,
        ) -> hyperslab_core::Result<()> {
            self.$inner.verify_checksum(chunk, reference)
        }
    };
    (@statistics $inner:ident) => {
        fn statistics(
            &self,
            chunks: &[hyperslab_core::ChunkCoord],
        ) -> hyperslab_core::Result<Vec<Option<hyperslab_core::ChunkStatistics>>> {
            self.$inner.statistics(chunks)
        }
    };
    (@statistics_are_hints $inner:ident) => {
        fn statistics_are_hints(&self) -> bool {
            self.$inner.statistics_are_hints()
        }
    };
    (@stored_form $inner:ident) => {
        fn stored_form(
            &self,
            chunk: &hyperslab_core::ChunkCoord,
            reference: &hyperslab_core::ChunkRef,
        ) -> Option<hyperslab_core::StoredForm> {
            self.$inner.stored_form(chunk, reference)
        }
    };
    // Methods about fetching: requests, locations and their cost.
    (@fetch $inner:ident) => {
        fn is_remote(&self) -> bool {
            self.$inner.is_remote()
        }

        fn fetch(
            &self,
            spans: &[&hyperslab_core::Span],
        ) -> hyperslab_core::Result<Vec<Option<bytes::Bytes>>> {
            self.$inner.fetch(spans)
        }

        fn place(
            &self,
            blob: &hyperslab_core::BlobKey,
        ) -> hyperslab_core::Result<hyperslab_core::ObjectPlace> {
            self.$inner.place(blob)
        }

        fn fetch_cost(
            &self,
            spans: &[&hyperslab_core::Span],
        ) -> hyperslab_core::Result<hyperslab_core::FetchCost> {
            self.$inner.fetch_cost(spans)
        }
    };
}

pub(crate) use forward_to;
