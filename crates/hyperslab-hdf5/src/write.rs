//! Writes new files and adds to existing ones.
//!
//! | module | holds |
//! |---|---|
//! | `options` | the caller's choices |
//! | `output`, `heap` | the file: allocation at its end, buffering of small pieces, variable-length elements |
//! | `plan`, `types` | the layout and type of a dataset, chosen before anything is written |
//! | `array`, `index` | writing chunks, and the indexes that find them |
//! | `object`, `group`, `fractal`, `attributes`, `scales` | headers, links and attributes, compact or dense |
//! | `node`, `tree`, `names`, `sink` | the nodes of a new file, their paths, and the commit |
//! | `space` | paged files, and the free space that files record |
//! | `append`, `existing`, `record`, `grow`, `extend`, `edit` | adding to files: frames, larger datasets, links, attributes, in-place changes |

mod append;
mod array;
mod attributes;
mod edit;
mod existing;
mod extend;
mod fractal;
mod group;
mod grow;
mod heap;
mod index;
mod names;
mod node;
mod object;
mod options;
mod output;
mod plan;
mod record;
mod scales;
mod sink;
mod space;
mod tree;
mod types;

pub use append::{AppendOptions, Hdf5Append};
pub use attributes::set_by_people;
pub use options::{Compatibility, DatasetLayout, Hdf5Options};
pub use sink::Hdf5Sink;
pub(crate) use space::FileSpace;
